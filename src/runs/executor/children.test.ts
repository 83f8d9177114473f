import { describe, expect, test } from "vitest";
import { Bench } from "../../../test/support/runs/executor-bench.ts";
import { minutes } from "../../kernel/time/duration.ts";
import { type ChildRun, childStep } from "../children/child-run.ts";
import { defineFanOut } from "../children/fan-out.ts";
import type { RunPhase } from "../model/run.ts";
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

describe("a run with a child that has not ended", () => {
  test("does not end by cancel, and orders the child to end once", async () => {
    const bench = aBench();
    bench.children = [aChild("RUNNING")];
    bench.cancelRequestedAt = bench.now;
    expect(await bench.look()).toMatchObject({
      type: "waiting",
      effects: expect.arrayContaining([expect.objectContaining({ type: "order", kind: "run", id: "run-child-1" })]),
    });
    bench.children = [{ ...aChild("RUNNING"), isCanceling: true }];
    expect(await bench.look()).toMatchObject({ type: "waiting", effects: [] });
    bench.children = [aChild("CANCELED")];
    expect(await bench.look()).toMatchObject({ event: "canceled" });
  });

  test("does not end by success", async () => {
    const bench = aBench();
    bench.children = [aChild("SUCCEEDED")];
    await bench.look();
    const stray = { ...aChild("RUNNING"), id: "run-stray", step: "another" };
    const other = aBench();
    other.children = [aChild("SUCCEEDED"), stray];
    expect(await other.look()).toMatchObject({ type: "waiting", reason: "waits for run run-stray" });
  });
});
