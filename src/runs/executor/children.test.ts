import { describe, expect, test } from "vitest";
import { Bench } from "../../../test/support/runs/executor-bench.ts";
import type { Outcome } from "../../kernel/outcome.ts";
import { minutes } from "../../kernel/time/duration.ts";
import { type ChildRun, childStep } from "../children/child-run.ts";
import { defineFanOut } from "../children/fan-out.ts";
import type { RunPhase } from "../model/run.ts";
import { type AnyStep, collectSteps, defineStep } from "../model/step.ts";
import { defineWorkflow, giveUp, goTo, planOfWorkflow } from "../workflows/workflow.ts";
import { createRunLog } from "./run-log.ts";
import { workOn } from "./step/advance.ts";
import * as visits from "./step/visit.ts";

const poke = {
  kind: "poke",
  defaults: { timeout: minutes(1), maxRetries: 0 },
  parse: (payload: object) => ({ ...payload }),
};
const pokeAll = defineFanOut({
  kind: "poke_all",
  parse: (payload) => payload,
  defaults: { timeout: minutes(5) },
  targets: () => [{ kind: "gadget", id: "g1" }],
  stepsOn: () => [childStep(poke, {})],
  atOnce: 1,
});

function aBench(): Bench {
  const bench = new Bench();
  bench.planned = ["poke_all"];
  bench.kinds = [pokeAll];
  return bench;
}

const aChild = (phase: RunPhase, round = 1): ChildRun => ({
  id: `run-child-${round}`,
  step: "poke_all",
  round,
  target: { kind: "gadget", id: "g1" },
  phase,
  message: "",
  isCanceling: false,
  cause: null,
  isUnproven: false,
  left: [],
});

test("a step that is entered again has nothing of the runs of the round before, and starts its own", async () => {
  const bench = aBench();
  bench.children = [aChild("SUCCEEDED", 1)];
  const run = bench.run();
  const [step] = run.plan.steps;
  if (!step) throw new Error("the plan has no step");
  const log = createRunLog(run.id, bench.context.clock, { upTo: () => 0, note: () => {} });
  const started = async (round: number) => {
    const looked = await workOn(run, step, visits.beginVisit(step, bench.now, round), bench.context, log);
    if (looked.type === "proven") return "proven";
    return looked.effects?.flatMap((effect) => (effect.type === "create" ? [effect.row.parent_round] : []));
  };
  expect(await started(1)).toBe("proven");
  expect(await started(2)).toEqual([2]);
});

async function aCanceled(from: Bench): Promise<Outcome> {
  const bench = aBench();
  bench.children = from.children;
  bench.cancelRequestedAt = bench.now;
  return bench.untilEnd();
}

describe("a run with a child that has not ended", () => {
  test("does not end by cancel, and orders the child to end once", async () => {
    const bench = aBench();
    bench.children = [aChild("RUNNING")];
    bench.cancelRequestedAt = bench.now;
    expect(await bench.pass()).toMatchObject({
      type: "waiting",
      effects: expect.arrayContaining([expect.objectContaining({ type: "order", kind: "run", id: "run-child-1" })]),
    });
    bench.children = [{ ...aChild("RUNNING"), isCanceling: true }];
    expect(await bench.pass()).toMatchObject({ type: "waiting", effects: [] });
    bench.children = [aChild("CANCELED")];
    expect(await bench.pass()).toMatchObject({ event: "canceled" });
  });

  test("ends without one that cannot prove what it began: that one keeps its device alone", async () => {
    const bench = aBench();
    bench.children = [{ ...aChild("RUNNING"), isUnproven: true, message: "unproven: no answer" }];
    expect(await bench.untilEnd()).toMatchObject({
      event: "step_failed",
      message: expect.stringContaining("no answer"),
    });
    expect(await aCanceled(bench)).toMatchObject({ event: "canceled" });
  });

  test("does not end by success", async () => {
    const bench = aBench();
    bench.children = [aChild("SUCCEEDED")];
    await bench.pass();
    const stray = { ...aChild("RUNNING"), id: "run-stray", step: "another" };
    const other = aBench();
    other.children = [aChild("SUCCEEDED"), stray];
    expect(await other.pass()).toMatchObject({ type: "waiting", reason: "waits for run run-stray" });
  });
});

describe("a workflow that goes on after a stage whose runs have not all ended", () => {
  const both = defineFanOut({
    kind: "poke_both",
    parse: (payload) => payload,
    defaults: { timeout: minutes(5) },
    targets: () => ["g0", "g1"].map((id) => ({ kind: "gadget", id })),
    stepsOn: () => [childStep(poke, {})],
    atOnce: 2,
    stopsAtFailure: true,
  });
  const again = defineWorkflow({
    kind: "again",
    doc: "",
    stages: [{ name: "poke_both", compensation: "nothing", maxRounds: 2, leadsTo: ["poke_both"], mayEnd: true }],
    next: (history, { onwards }) => (history.length === 1 ? goTo("poke_both") : onwards),
  });

  /** Commits the runs that the pass has started, and cancels the runs that it has ordered to end. */
  async function pass(bench: Bench): Promise<Outcome> {
    const outcome = await bench.pass();
    for (const effect of outcome.effects ?? []) {
      if (effect.type === "order")
        bench.children = bench.children.map((one) => (one.id === effect.id ? { ...one, isCanceling: true } : one));
      if (effect.type !== "create") continue;
      const { target_id: id, parent_round: round } = effect.row;
      const target = { kind: "gadget", id: String(id) };
      bench.children = [
        ...bench.children,
        { ...aChild("RUNNING"), step: "poke_both", id: effect.id, target, round: Number(round) },
      ];
    }
    return outcome;
  }
  const named = ({ target, round, phase }: ChildRun) => `${target.id} ${round} ${phase}`;
  const become = (bench: Bench, id: string, phase: RunPhase) => {
    bench.children = bench.children.map((one) => (one.target.id === id ? { ...one, phase } : one));
  };

  test("cancels those runs and enters the next stage once they have ended", async () => {
    const bench = new Bench();
    bench.kinds = [both];
    bench.workflows = new Map([["again", again]]);
    bench.plan = planOfWorkflow(again, collectSteps([both]) as ReadonlyMap<string, AnyStep>);
    await pass(bench);
    become(bench, "g0", "FAILED");
    await pass(bench);
    expect(bench.steps).toMatchObject([{ round: 1, state: "FAILED" }]);
    expect(await pass(bench)).toMatchObject({ type: "waiting", reason: expect.stringContaining("has failed: waits") });
    await pass(bench);
    expect(bench.children.map(named)).toEqual(["g0 1 FAILED", "g1 1 RUNNING"]);
    expect(bench.children.map(({ isCanceling }) => isCanceling)).toEqual([false, true]);
    become(bench, "g1", "CANCELED");
    await pass(bench);
    expect(bench.children.map(named)).toEqual(["g0 1 FAILED", "g1 1 CANCELED", "g0 2 RUNNING", "g1 2 RUNNING"]);
  });
});

test("an undo is given the runs of its own round", async () => {
  const seen: string[][] = [];
  const lone = defineStep({
    kind: "lone",
    needs: [],
    parse: (payload) => payload,
    before: async () => ({}),
    act: async () => ({ receipt: {} }),
    probe: async ({ receipt }) => (receipt === null ? "not_done" : "done"),
    undo: async ({ children }) => {
      seen.push(children.map(({ id }) => id));
      return undefined;
    },
  });
  const twice = defineWorkflow({
    kind: "twice",
    doc: "",
    stages: [{ name: "lone", compensation: "undo", maxRounds: 2, leadsTo: ["lone"], mayEnd: true }],
    next: (history) => (history.length < 2 ? goTo("lone") : giveUp()),
  });
  const bench = new Bench();
  bench.kinds = [lone];
  bench.workflows = new Map([["twice", twice]]);
  bench.plan = planOfWorkflow(twice, collectSteps([lone]) as ReadonlyMap<string, AnyStep>);
  await bench.untilEnd();
  expect(bench.steps.map(({ round, state }) => [round, state])).toEqual([
    [1, "SUCCEEDED"],
    [2, "SUCCEEDED"],
  ]);
  bench.children = [1, 2].map((round) => ({ ...aChild("SUCCEEDED", round), step: "lone" }));
  bench.cancelRequestedAt = bench.now;
  await bench.untilEnd();
  expect(seen).toEqual([["run-child-2"], ["run-child-1"]]);
});
