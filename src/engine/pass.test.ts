import { describe, expect, test } from "vitest";
import { final, forPerson, retryable } from "../../test/support/failures.ts";
import { StepFailure } from "../kernel/errors.ts";
import {
  defineLifecycle,
  type Happening,
  type JsonObject,
  type Lifecycle,
  on,
  onFailure,
  type Thing,
  when,
} from "../kernel/lifecycle.ts";
import { happened, nothingToDo, type Outcome, waitFor } from "../kernel/outcome.ts";
import { hours, milliseconds, minutes, seconds } from "../kernel/time/duration.ts";
import { changedFacts, type HandlerOf, makePass } from "./pass.ts";

const NOW = new Date("2030-01-01T12:00:00Z");
const called = (thing: Thing) => "call" in thing.facts;
const explode = () => {
  throw new Error("the guard is broken");
};
const cause = (_: Thing, { message }: Happening): JsonObject => ({ cause: message ?? "" });

const lifecycle = defineLifecycle<Thing>()({
  kind: "lamp",
  initial: "off",
  states: {
    off: { rest: true, doc: "Dark." },
    lighting: { sla: minutes(5), deadline: minutes(4), doc: "Getting bright." },
    on: { sla: minutes(5), doc: "Bright." },
    odd: { sla: minutes(5), doc: "Its guard throws." },
  },
  transitions: [
    ["off", when(called), "lighting"],
    ["lighting", on("lit"), "on"],
    ["lighting", onFailure("blown"), "off", { carries: cause }],
    ["on", on("worn_out"), "odd"],
    ["odd", when(explode), "off"],
  ],
}) as unknown as Lifecycle<Thing>;

const lamp = (state: string, change: Partial<Thing> = {}): Thing => ({
  id: "lamp-1",
  version: 1,
  state: { name: state },
  stateSince: NOW,
  basis: 1,
  stateVersion: 1,
  facts: {},
  outcome: null,
  ...change,
});
const pass = (thing: Thing, handle?: () => Promise<Outcome>, failures = 0) => {
  const handlerOf: HandlerOf = () => handle;
  return makePass({
    lifecycle,
    handlerOf,
    thing,
    failures,
    clock: { now: () => NOW, monotonic: () => 0 },
    call: { signal: new AbortController().signal, subject: "lamp", mayTouchDevice: (wanted) => wanted },
  });
};
const agedBy = (ms: number) => ({ stateSince: new Date(NOW.getTime() - ms) });
const throwing = (error: Error) => async (): Promise<Outcome> => {
  throw error;
};

describe("a pass", () => {
  test("follows the controller's own rows first, without asking the handler", async () => {
    let asked = false;
    const seen = await pass(lamp("off", { facts: { call: true } }), async () => {
      asked = true;
      return nothingToDo(null);
    });
    expect(seen.move).toMatchObject({ from: "off", to: "lighting", owner: "controller", trigger: "called" });
    expect(asked).toBe(false);
  });

  test("at a state without a handler leads nowhere until somebody wakes the thing", async () => {
    expect(await pass(lamp("off"))).toEqual({
      outcome: null,
      effects: [],
      after: null,
      failures: 0,
      error: null,
      cause: null,
    });
  });

  test("takes what happened to the table, with facts and effects", async () => {
    const effects = [{ type: "wake", kind: "lamp", id: "lamp-2" }] as const;
    const seen = await pass(lamp("lighting", { facts: { lux: 1 } }), async () =>
      happened("lit", { facts: { lux: 9, same: 1 }, effects }),
    );
    expect(seen).toMatchObject({ move: { to: "on", trigger: "lit" }, facts: { lux: 9 }, effects, failures: 0 });
  });

  test("takes what followed to the table too, each from the state that the one before leads to", async () => {
    const seen = await pass(lamp("lighting"), async () =>
      happened("lit", { facts: { lux: 9 }, followedBy: [{ event: "worn_out", message: "old" }] }),
    );
    expect(seen).toMatchObject({ move: { from: "lighting", to: "on" }, facts: { lux: 9 } });
    expect(seen.further).toMatchObject([
      { thing: { state: { name: "on" }, facts: { lux: 9 } }, move: { from: "on", to: "odd", message: "old" } },
    ]);
  });

  test("at something that is late ends along the failure row, also when it merely waits", async () => {
    const waiting = async () => waitFor("still dark", seconds(1));
    expect((await pass(lamp("lighting", agedBy(minutes(4))), waiting)).move).toBeUndefined();
    const late = await pass(lamp("lighting", agedBy(minutes(4) + 1)), waiting);
    expect(late.move).toMatchObject({
      to: "off",
      trigger: "blown",
      carried: { cause: "not done within 4m: still dark" },
    });
  });

  test("names in the cause also what failed just before", async () => {
    const outcome = { type: "failing", reason: "no current" } as const;
    const late = await pass(lamp("lighting", { ...agedBy(minutes(5)), outcome }), async () =>
      waitFor("still dark", seconds(1)),
    );
    expect(late.move?.message).toBe("not done within 4m: still dark; before that: no current");
  });

  test("is repeated at the deadline at the latest, whatever pause was wanted", async () => {
    const left = { ...agedBy(minutes(3)) };
    expect((await pass(lamp("lighting", left), async () => waitFor("dark", minutes(30)))).after).toBe(60_001);
    const asked = throwing(new StepFailure("script_failed", "busy", { retryAfterMs: hours(5) }));
    expect((await pass(lamp("lighting", left), asked)).after).toBe(60_001);
    expect((await pass(lamp("on"), asked)).after).toBe(minutes(15));
    expect((await pass(lamp("on"), async () => waitFor("bright", minutes(30)))).after).toBe(minutes(30));
  });

  test("that fails is repeated after a pause that grows with the failures, and says what failed", async () => {
    const failing = throwing(retryable("no current"));
    const first = await pass(lamp("on"), failing);
    expect(first).toMatchObject({
      outcome: { type: "failing", reason: "no current" },
      failures: 1,
      error: "no current",
    });
    expect(first.after).toBeLessThanOrEqual(1_200);
    const sixth = await pass(lamp("on"), failing, 5);
    expect(sixth.failures).toBe(6);
    expect(sixth.after).toBeGreaterThan(20_000);
  });

  test("keeps to the pause that the device asked for", async () => {
    const asked = throwing(new StepFailure("script_failed", "busy", { retryAfterMs: 30_000 }));
    expect((await pass(lamp("on"), asked)).after).toBe(30_000);
  });

  test("that fails for good ends along the failure row, or stays where there is none", async () => {
    const failing = throwing(final("bulb missing"));
    expect((await pass(lamp("lighting"), failing)).move).toMatchObject({
      to: "off",
      carried: { cause: "bulb missing" },
    });
    expect(await pass(lamp("on"), failing)).toMatchObject({ outcome: { type: "failing" }, failures: 1 });
  });

  test("that needs a person stays, also beyond the deadline", async () => {
    const stuck = throwing(forPerson("change the bulb"));
    const seen = await pass(lamp("lighting", agedBy(hours(1))), stuck);
    expect(seen).toMatchObject({
      outcome: { type: "needs_intervention", reason: "change the bulb" },
      after: minutes(5),
    });
    expect(seen.move).toBeUndefined();
  });

  test.each<[string, Thing, () => Promise<Outcome>, string]>([
    ["an error that nobody foresaw", lamp("on"), throwing(new TypeError("x is undefined")), "x is undefined"],
    [
      "an event that the table does not know",
      lamp("on"),
      async () => happened("stolen"),
      "the handler of on reported stolen",
    ],
    [
      "something that followed where the table does not know it",
      lamp("lighting"),
      async () => happened("lit", { followedBy: [{ event: "lit" }] }),
      "the handler of lighting reported lit, which the table does not know in on",
    ],
    ["a guard that throws", lamp("odd"), async () => nothingToDo(null), "the guard is broken"],
    ["a state that the table does not know", lamp("blinking"), async () => nothingToDo(null), "in state blinking"],
  ])("shows %s as a bug, and goes on", async (_, thing, handle, reason) => {
    const seen = await pass(thing, handle);
    expect(seen.bug).toBeInstanceOf(Error);
    expect(seen.outcome).toMatchObject({ type: "failing", reason: expect.stringContaining(`unexpected error: `) });
    expect(seen.error).toContain(reason);
    expect(seen.after).toBeGreaterThan(0);
  });

  test("that went well forgets earlier failures", async () => {
    expect(await pass(lamp("on"), async () => nothingToDo(milliseconds(5)), 7)).toMatchObject({
      outcome: null,
      failures: 0,
      error: null,
      after: 5,
    });
  });
});

test("facts are written only where they differ, however deep", () => {
  const thing = lamp("on", { facts: { a: 1, list: [{ x: 1 }, { x: 2 }], nothing: null } });
  expect(changedFacts(thing, { a: 1, list: [{ x: 1 }, { x: 2 }], nothing: null })).toEqual({});
  expect(changedFacts(thing, { list: [{ x: 1 }] })).toEqual({ list: [{ x: 1 }] });
  expect(changedFacts(thing, { list: [{ x: 1 }, { x: 3 }], fresh: 0 })).toEqual({
    list: [{ x: 1 }, { x: 3 }],
    fresh: 0,
  });
});
