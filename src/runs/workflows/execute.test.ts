import { describe, expect, test } from "vitest";
import { final } from "../../../test/support/failures.ts";
import { Bench } from "../../../test/support/runs/executor-bench.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { type AnyStep, collectSteps, defineStep } from "../model/step.ts";
import { defineWorkflow, giveUp, goTo, planOfWorkflow, skip } from "./workflow.ts";

/** A world of which each stage does a part; what fails, and what is found, a test says. */
class World {
  readonly did: string[] = [];
  /** By stage: as often as it fails first, and why. */
  fails: Record<string, StepFailure[]> = {};
  verdicts: string[] = [];

  readonly steps = ["prepare", "network", "deploy", "classify", "check"].map((kind) =>
    defineStep({
      kind,
      needs: [],
      parse: (payload) => payload,
      before: async () => ({ before: this.did.length }),
      act: async () => {
        const failure = this.fails[kind]?.shift();
        if (failure) throw failure;
        this.did.push(kind);
        return { receipt: { job: `${kind}-${this.did.length}` } };
      },
      probe: async ({ receipt }) => {
        if (receipt === null) return "not_done";
        return {
          state: "done",
          message: String(receipt.job),
          ...(kind === "classify" && { verdict: this.verdicts.shift() ?? "" }),
        };
      },
    }),
  );
}

const deploying = defineWorkflow({
  kind: "deploying",
  doc: "",
  stages: [
    { name: "prepare", compensation: "nothing", maxRounds: 3, maxRetries: 0 },
    { name: "network", compensation: "nothing", maxRounds: 3 },
    { name: "deploy", compensation: "nothing", maxRounds: 3, maxRetries: 0, leadsTo: ["classify", "check"] },
    { name: "classify", compensation: "nothing", maxRounds: 3, leadsTo: ["prepare"] },
    { name: "check", compensation: "nothing", maxRetries: 0 },
  ],
  next(history, { onwards }) {
    const last = history.at(-1);
    if (last?.stage === "prepare" && last.state === "SUCCEEDED") return skip("network", "the profile has none");
    if (last?.stage === "deploy" && last.state === "SUCCEEDED") return goTo("check");
    if (last?.stage === "deploy" && last.cause === "install_failed") return goTo("classify");
    if (last?.stage === "classify")
      return last.verdict === "datasource" ? goTo("prepare") : giveUp("its disk is broken", { needsPerson: true });
    return onwards;
  },
});

function benchOf(world: World): Bench {
  const bench = new Bench();
  bench.kinds = world.steps;
  bench.workflows = new Map([["deploying", deploying]]);
  bench.plan = planOfWorkflow(deploying, collectSteps(world.steps) as ReadonlyMap<string, AnyStep>);
  return bench;
}
const installFailed = () => new StepFailure("install_failed", "no datasource", { disposition: "fail" });
const visitsOf = (bench: Bench) => bench.steps.map(({ name, round, state }) => `${name} ${round} ${state}`);

describe("a run of a workflow", () => {
  test("skips a stage with a reason, and goes to its end", async () => {
    const world = new World();
    const bench = benchOf(world);
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(world.did).toEqual(["prepare", "deploy", "check"]);
    expect(visitsOf(bench)).toEqual([
      "prepare 1 SUCCEEDED",
      "network 1 SKIPPED",
      "deploy 1 SUCCEEDED",
      "check 1 SUCCEEDED",
    ]);
    expect(bench.steps[1]).toMatchObject({ message: "the profile has none", startedAt: null, finishedAt: bench.now });
    expect(bench.logged).toContain("step network is skipped: the profile has none\n");
  });

  test("goes back a stage after a failure that it knows: each visit has evidence and a receipt of its own", async () => {
    const world = new World();
    world.fails = { deploy: [installFailed()] };
    world.verdicts = ["datasource"];
    const bench = benchOf(world);
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(visitsOf(bench)).toEqual([
      "prepare 1 SUCCEEDED",
      "network 1 SKIPPED",
      "deploy 1 FAILED",
      "classify 1 SUCCEEDED",
      "prepare 2 SUCCEEDED",
      "network 2 SKIPPED",
      "deploy 2 SUCCEEDED",
      "check 1 SUCCEEDED",
    ]);
    expect(bench.steps[2]).toMatchObject({ cause: { code: "install_failed" }, message: "no datasource" });
    expect(bench.steps[3]).toMatchObject({ verdict: "datasource" });
    expect([bench.steps[0], bench.steps[4]].map((visit) => visit?.receipt)).toEqual([
      { job: "prepare-1" },
      { job: "prepare-3" },
    ]);
    expect(bench.logged).toContain("step prepare is entered again, round 2\n");
  });

  test("fails for a person once a stage was entered as often as it may be", async () => {
    const world = new World();
    world.fails = { deploy: [installFailed(), installFailed(), installFailed()] };
    world.verdicts = ["datasource", "datasource", "datasource"];
    const bench = benchOf(world);
    expect(await bench.untilEnd(60)).toMatchObject({
      event: "step_failed",
      message: "prepare: was entered 3 times, which is as often as workflow deploying allows",
      facts: { error: { retryable: false, details: { step: "prepare" } } },
    });
    expect(bench.steps).toHaveLength(12);
  });

  test("fails for a person where a stage found that nothing helps", async () => {
    const world = new World();
    world.fails = { deploy: [installFailed()] };
    world.verdicts = ["disk"];
    const bench = benchOf(world);
    expect(await bench.untilEnd()).toMatchObject({
      event: "step_failed",
      message: "classify: its disk is broken",
      facts: { error: { retryable: false } },
    });
  });

  test("fails as a plan does where the workflow knows no way on", async () => {
    const world = new World();
    world.fails = { check: [final("the node is not ready")] };
    const bench = benchOf(world);
    expect(await bench.untilEnd()).toMatchObject({
      event: "step_failed",
      message: "check: the node is not ready",
      facts: { error: { retryable: true } },
    });
  });

  test("goes on after a crash at any pass: nothing is done twice", async () => {
    const undisturbed = new World();
    undisturbed.fails = { deploy: [installFailed()] };
    undisturbed.verdicts = ["datasource"];
    const straight = benchOf(undisturbed);
    await straight.untilEnd();

    for (let at = 0; at < 12; at += 1) {
      const world = new World();
      world.fails = { deploy: [installFailed()] };
      world.verdicts = ["datasource", "datasource"];
      const bench = benchOf(world);
      for (let looks = 0; looks < at; looks += 1) {
        const outcome = await bench.pass();
        if (outcome.type === "waiting") bench.now = new Date(bench.now.getTime() + outcome.after);
        if (outcome.type === "happened" && outcome.event !== "acting") return;
      }
      bench.instance = "two"; // the process died between two passes
      expect(await bench.untilEnd(60)).toMatchObject({ event: "finished" });
      expect(world.did, `died after pass ${at}`).toEqual(undisturbed.did);
      expect(visitsOf(bench)).toEqual(visitsOf(straight));
    }
  });

  test("waits for a server that knows the workflow", async () => {
    const bench = benchOf(new World());
    bench.workflows = new Map();
    expect(await bench.pass()).toMatchObject({
      type: "waiting",
      reason: "this server does not know workflow deploying",
    });
  });
});
