import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { StepFailure } from "../../kernel/errors.ts";
import type { JsonObject, Thing } from "../../kernel/lifecycle.ts";
import { minutes } from "../../kernel/time/duration.ts";
import type { RunThing } from "../model/lifecycle.ts";
import { type AnyStep, collectSteps, type ProbeReport, readProbe } from "../model/step.ts";
import { type ChildRun, childStep, type NewChild, startChild } from "./child-run.ts";
import { defineFanOut, type FanOut } from "./fan-out.ts";
import { describeSum, sumUp } from "./sum.ts";

const poke = {
  kind: "poke",
  defaults: { timeout: minutes(1), maxRetries: 2 },
  parse: (payload: JsonObject) => payload,
};

function fanOutOver(count: number, atOnce: number, more: Partial<FanOut<Thing, JsonObject>> = {}): AnyStep {
  const step = defineFanOut<Thing, JsonObject>({
    kind: "poke_all",
    parse: (payload) => payload,
    defaults: { timeout: minutes(5) },
    targets: () => Array.from({ length: count }, (_, at) => ({ kind: "gadget", id: `g${at}` })),
    stepsOn: () => [childStep(poke, {})],
    atOnce,
    ...more,
  });
  return collectSteps([step]).get("poke_all") as AnyStep;
}

const PARENT = {
  id: "run-parent",
  plan: { planId: "p", displayName: "", steps: [] },
  facts: { scripts: {} },
} as unknown as RunThing;

type End = "SUCCEEDED" | "FAILED" | "CANCELED";

/** The step as an executor drives it; `ends` says how the children end, one after the other, `pick` which one is next. */
async function drive(kind: AnyStep, ends: readonly End[], pick: (active: number) => number) {
  const children: ChildRun[] = [];
  let most = 0;
  const context = {
    payload: {},
    target: {},
    children,
    startRun: (child: NewChild) => startChild(PARENT, { step: "poke_all", round: 1 }, child),
  } as unknown as Parameters<AnyStep["before"]>[0];
  const evidence = await kind.before(context);
  const acting = { ...context, evidence, receipt: null };
  const start = async (doing: AnyStep["act"] | undefined) => {
    for (const effect of (await doing?.(acting))?.effects ?? []) {
      if (effect.type !== "create") throw new Error(`${effect.type} is no start`);
      const { target_kind: targetKind, target_id: id } = effect.row;
      const target = { kind: String(targetKind), id: String(id) };
      if (children.some((child) => child.id === effect.id)) continue; // as the database leaves what is there
      children.push({ ...CHILD, id: effect.id, target });
    }
    most = Math.max(most, children.filter(({ phase }) => phase === "RUNNING").length);
  };
  for (let passes = 0; passes < 1_000; passes += 1) {
    let report: ProbeReport;
    try {
      report = readProbe(await kind.probe(acting));
    } catch (error) {
      if (!(error instanceof StepFailure)) throw error;
      return { end: "failed" as const, children, most, message: error.message };
    }
    if (report.state === "done") return { end: "done" as const, children, most, message: report.message ?? "" };
    if (report.state === "not_done") await start(kind.act);
    if (report.state === "halfway") await start(kind.carryOn);
    if (report.state !== "in_progress") continue;
    const active = children.filter(({ phase }) => phase === "RUNNING");
    const ending = active[pick(active.length)];
    const at = children.indexOf(ending as ChildRun);
    children[at] = { ...(ending as ChildRun), phase: ends[at] ?? "SUCCEEDED" };
  }
  throw new Error("it came to no end");
}

const CHILD: ChildRun = {
  id: "",
  step: "poke_all",
  round: 1,
  target: { kind: "gadget", id: "" },
  phase: "RUNNING",
  message: "",
  isCanceling: false,
  cause: null,
  isUnproven: false,
  left: [],
};

const anEnd = fc.constantFrom<End>("SUCCEEDED", "FAILED", "CANCELED");

describe("a step that starts runs on other things", () => {
  test("starts each once, no more than so many at a time, and succeeds only if all have, in whatever order they end", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anEnd, { maxLength: 30 }),
        fc.integer({ min: 1, max: 8 }),
        fc.infiniteStream(fc.nat()),
        async (ends, atOnce, picks) => {
          const pick = (active: number) => picks.next().value % active;
          const { end, children, most } = await drive(fanOutOver(ends.length, atOnce), ends, pick);
          expect(end).toBe(ends.every((one) => one === "SUCCEEDED") ? "done" : "failed");
          expect(new Set(children.map(({ target }) => target.id)).size).toBe(ends.length);
          expect(children).toHaveLength(ends.length);
          expect(most).toBe(Math.min(atOnce, ends.length));
        },
      ),
      { numRuns: 200 },
    );
  });

  test("that stops at the first failure starts nothing after it", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anEnd, { maxLength: 30 }),
        fc.integer({ min: 1, max: 8 }),
        fc.infiniteStream(fc.nat()),
        async (ends, atOnce, picks) => {
          const kind = fanOutOver(ends.length, atOnce, { stopsAtFailure: true });
          const { end, children } = await drive(kind, ends, (active) => picks.next().value % active);
          const bad = children.filter(({ phase }) => phase === "FAILED" || phase === "CANCELED");
          expect(end).toBe(bad.length === 0 ? "done" : "failed");
          expect(bad.length).toBeLessThanOrEqual(1);
        },
      ),
      { numRuns: 200 },
    );
  });

  test("says which failed and why, and does not drown its reader", async () => {
    const { message } = await drive(fanOutOver(9, 3), Array<End>(8).fill("FAILED"), () => 0);
    expect(message).toBe("1 of 9 succeeded; failed: gadget g0, gadget g1, gadget g2, gadget g3, gadget g4 and 3 more");
  });

  test("tells beforehand what it would start", () => {
    const planned = fanOutOver(2, 1).children?.({} as Thing, {}) ?? [];
    expect(planned.map(({ target, steps }) => [target.id, steps.map(({ kind }) => kind)])).toEqual([
      ["g0", ["poke"]],
      ["g1", ["poke"]],
    ]);
  });
});

describe("a run that is started as a part of another", () => {
  const started = (step: string, round: number, id: string, parent = PARENT) =>
    startChild(
      parent,
      { step, round },
      { target: { kind: "gadget", id }, displayName: "", steps: [childStep(poke, {})] },
    );

  test("has an id that follows from parent, step, round and target, and from nothing else", () => {
    const { id, row } = started("a", 1, "g1");
    expect(started("a", 1, "g1").id).toBe(id);
    expect(id).toMatch(/^run-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    const others = [started("b", 1, "g1"), started("a", 2, "g1"), started("a", 1, "g2")];
    const ofOther = started("a", 1, "g1", { ...PARENT, id: "run-other" });
    expect(new Set([id, ofOther.id, ...others.map((other) => other.id)]).size).toBe(5);
    expect(row).toMatchObject({
      parent_run_id: "run-parent",
      parent_step: "a",
      parent_round: 1,
      initiator: "run run-parent",
    });
    expect(row).not.toHaveProperty("machine_id");
  });

  test("may have been begun on its behalf: then it only probes, by the receipt that it was given", () => {
    const at = new Date("2026-01-01T00:00:00Z");
    const begun = { evidence: { version: "1" }, receipt: { job: "j-1" }, at };
    const child = { target: { kind: "gadget", id: "g1" }, displayName: "", steps: [childStep(poke, {})], begun };
    const { facts } = startChild(PARENT, { step: "a", round: 1 }, child).row as { facts: JsonObject };
    expect(facts.steps).toEqual([
      expect.objectContaining({
        name: "poke",
        state: "RUNNING",
        evidence: { version: "1" },
        receipt: { job: "j-1" },
        actedAt: at.toISOString(),
        toTakeBack: { version: "1" },
      }),
    ]);
  });
});

test("a sum counts what has not ended and what was not started", () => {
  const targets = ["g0", "g1", "g2"].map((id) => ({ kind: "gadget", id }));
  const sum = sumUp(targets, [{ ...CHILD, id: "run-1", target: { kind: "gadget", id: "g1" } }]);
  expect(describeSum(sum)).toBe("0 of 3 succeeded; 1 running; 2 not started");
});
