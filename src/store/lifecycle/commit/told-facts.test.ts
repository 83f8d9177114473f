import { describe, expect, test } from "vitest";
import type { JsonObject, Thing } from "../../../kernel/lifecycle.ts";
import { tellFacts } from "./told-facts.ts";

const lifecycle = { quietFacts: ["heartbeat"], listFacts: { steps: { untold: ["secret"], counted: "round" } } };
const thing = (facts: object): Thing => ({ facts }) as Thing;
/** As it is written. */
const told = (before: object, patch: JsonObject): unknown =>
  JSON.parse(JSON.stringify(tellFacts(lifecycle, thing(before), patch)));

describe("what the journal tells of facts", () => {
  test("is how they are now and how they were", () => {
    expect(told({ serial: "A", model: "M" }, { serial: "B" })).toEqual({
      facts: { serial: "B" },
      was: { serial: "A" },
    });
  });

  test("has no past where there was none", () => {
    expect(told({ serial: null }, { serial: "B" })).toEqual({ facts: { serial: "B" } });
  });

  test("is nothing where only quiet ones changed", () => {
    expect(told({ heartbeat: 1 }, { heartbeat: 2 })).toEqual({});
  });

  test("is of a list the part with the same name and count, and says a count only from 2 on", () => {
    const before = {
      steps: [
        { name: "one", round: 1, done: true },
        { name: "one", round: 2 },
      ],
    };
    const first = { name: "one", done: true };
    expect(told(before, { steps: [first, { name: "one", round: 2 }] })).toEqual({
      facts: { steps: [] },
      was: { steps: [] },
    });
    expect(told(before, { steps: [first, { name: "one", round: 2, done: true }] })).toEqual({
      facts: { steps: [{ name: "one", round: 2, done: true }] },
      was: { steps: [{ name: "one", round: 2 }] },
    });
    expect(told(before, { steps: [{ name: "one" }, { name: "one", round: 2 }] })).toEqual({
      facts: { steps: [{ name: "one" }] },
      was: { steps: [{ name: "one", done: true }] },
    });
  });

  test("is of a list only the parts that are new or changed", () => {
    const at = new Date("2026-01-01T00:00:00Z");
    const before = {
      steps: [
        { name: "one", at },
        { name: "two", at, done: false },
      ],
    };
    const one = { name: "one", at: at.toISOString() };
    const two = { at: at.toISOString(), name: "two", done: true };
    expect(told(before, { steps: [one, two, { name: "three" }] })).toEqual({
      facts: { steps: [two, { name: "three" }] },
      was: { steps: [{ name: "two", at: at.toISOString() }] },
    });
  });

  test("is of a part what may be told, and nothing where no more than what says nothing has changed", () => {
    const before = {
      steps: [{ name: "one", state: "RUNNING", secret: { token: "t" }, message: "", done: false, at: null }],
    };
    expect(told(before, { steps: [{ name: "one", state: "RUNNING", secret: { token: "t" } }] })).toEqual({
      facts: { steps: [] },
      was: { steps: [] },
    });
    const patch = { steps: [{ name: "one", state: "DONE", secret: { token: "t", at: "now" } }] };
    expect(told(before, patch)).toEqual({
      facts: { steps: [{ name: "one", state: "DONE" }] },
      was: { steps: [{ name: "one", state: "RUNNING" }] },
    });
  });
});
