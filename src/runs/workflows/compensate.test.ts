import { describe, expect, test } from "vitest";
import { final } from "../../../test/support/failures.ts";
import { Bench } from "../../../test/support/runs/executor-bench.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { decide } from "../../kernel/decide.ts";
import type { Outcome } from "../../kernel/outcome.ts";
import { residueFacts } from "../../kernel/residue.ts";
import { minutes, seconds } from "../../kernel/time/duration.ts";
import { jobStateOf } from "../model/job-state.ts";
import { runLifecycle } from "../model/lifecycle.ts";
import type { RunPhase } from "../model/run.ts";
import { type AnyStep, collectSteps, defineStep, type Undone } from "../model/step.ts";
import type { WorkflowAction } from "./actions.ts";
import { inheritStages } from "./next-attempt.ts";
import { defineWorkflow, planOfWorkflow } from "./workflow.ts";

const NAMES = ["create", "look", "format", "deploy", "check"] as const;
type Name = (typeof NAMES)[number];

/** A world of parts, each made and unmade by one stage. */
class World {
  readonly made: string[] = [];
  readonly unmade: string[] = [];
  fails: { [name in Name]?: Error } = {};
  undo: { [name in Name]?: () => Undone | undefined } = {};
  /** What people have made by hand, for whoever looks. */
  byHand: Name[] = [];
  /** The stage that sets something for a restart to come. */
  armed: Name | undefined;

  readonly steps = NAMES.map((kind) =>
    defineStep({
      kind,
      needs: [],
      parse: (payload) => payload,
      before: async () => ({ nth: this.made.length }),
      act: async () => {
        const failure = this.fails[kind];
        if (failure) throw failure;
        this.made.push(kind);
        return { receipt: { part: `${kind}-${this.made.length}` } };
      },
      probe: async ({ receipt }) => (receipt === null ? "not_done" : "done"),
      observe: async () => (this.byHand.includes(kind) ? "done" : "not_done"),
      ...(kind !== "look" && {
        undo: async ({ receipt }: { readonly receipt: { readonly part?: string } | null }) => {
          const undone = this.undo[kind]?.();
          if (undone?.goesOn === undefined) this.unmade.push(String(receipt?.part ?? kind));
          return undone;
        },
      }),
    }),
  );
}

const building = defineWorkflow({
  kind: "building",
  doc: "",
  stages: [
    { name: "create", compensation: "undo", isSafe: true, maxRetries: 0 },
    { name: "look", compensation: "nothing", maxRetries: 0 },
    { name: "format", compensation: { stays: "what was on the disk is gone" }, maxRetries: 0 },
    { name: "deploy", compensation: "undo", maxRetries: 0, timeout: minutes(1) },
    { name: "check", compensation: "undo", maxRetries: 0 },
  ],
});

function benchOf(world: World): Bench {
  const bench = new Bench();
  bench.kinds = world.steps.map((step) => (step.kind === world.armed ? { ...step, forNextBoot: true } : step));
  bench.workflows = new Map([["building", building]]);
  bench.plan = planOfWorkflow(building, collectSteps(world.steps) as ReadonlyMap<string, AnyStep>);
  return bench;
}

/** The run of before as one that has ended, and the next attempt at its job in its place. */
function next(bench: Bench, action: WorkflowAction): Bench {
  const { plan } = bench;
  if (!plan) throw new Error("there is no plan");
  const inherited = inheritStages({ ...bench, plan, params: {} }, action, building);
  const { residue, ...rest } = inherited;
  const anew = { startedAt: bench.now, logged: [], manual: null, undoingSince: null };
  Object.assign(bench, { id: "run-2", action, ...rest, ...residueFacts(residue), ...anew });
  bench.cancelRequestedAt = action === "cancel" ? bench.now : null;
  return bench;
}

const failedAt = async (name: Name, world = new World()): Promise<{ bench: Bench; world: World }> => {
  world.fails = { [name]: final(`${name} is not possible`) };
  const bench = benchOf(world);
  expect(await bench.untilEnd()).toMatchObject({ event: "step_failed" });
  world.fails = {};
  world.unmade.length = 0; // the stage that failed was undone when it did
  return { bench, world };
};

/** Passes until the stage is about to act. */
async function announced(bench: Bench, name: Name): Promise<void> {
  for (let passes = 0; bench.steps.at(-1)?.name !== name || bench.steps.at(-1)?.actingAt === null; passes += 1) {
    expect(passes).toBeLessThan(30);
    await bench.pass();
  }
}

const nobodyAnswers = (): never => {
  throw new DeviceFailure("unreachable", "bmc", "nobody answers");
};
const jobStateWhile = (bench: Bench, phase: RunPhase = "RUNNING") =>
  jobStateOf({ ...bench.run(), phase, ...bench.run().facts, nextRunId: null });
const visitsOf = (bench: Bench) => bench.steps.map(({ name, round, state }) => `${name} ${round} ${state}`);
const done: (outcome: Outcome) => unknown = (outcome) => ("event" in outcome ? outcome.event : outcome.type);

describe("a cancel of a workflow that goes on", () => {
  test("undoes its stages, the last first, each once and by its receipt", async () => {
    const world = new World();
    const bench = benchOf(world);
    await announced(bench, "check");
    bench.cancelRequestedAt = bench.now;
    expect(jobStateWhile(bench)).toBe("compensating");
    expect(done(await bench.untilEnd())).toBe("canceled");
    expect(world.unmade).toEqual(["check", "deploy-4", "create-1"]);
    expect(bench.residue).toEqual(["format: what was on the disk is gone"]);
    expect(bench.steps.map(({ takenBack }) => takenBack)).toEqual([true, false, true, true, true]);
  });

  test("goes on after a crash in the middle of it", async () => {
    const { bench, world } = await failedAt("check");
    next(bench, "cancel");
    await bench.pass();
    await bench.lookAndDie();
    expect(done(await bench.untilEnd())).toBe("canceled");
    expect([...new Set(world.unmade)]).toEqual(["deploy-4", "create-1"]);
  });
});

describe("a cancel of a workflow that has failed", () => {
  test("is an attempt that undoes what those before it did", async () => {
    const { bench, world } = await failedAt("check");
    next(bench, "cancel");
    expect(jobStateWhile(bench)).toBe("compensating");
    expect(done(await bench.untilEnd())).toBe("canceled");
    expect(world.made).toEqual(["create", "look", "format", "deploy"]);
    expect(world.unmade).toEqual(["deploy-4", "create-1"]);
    expect(visitsOf(bench)).toEqual([
      "create 1 SUCCEEDED",
      "look 1 SUCCEEDED",
      "format 1 SUCCEEDED",
      "deploy 1 SUCCEEDED",
      "check 1 FAILED",
    ]);
    expect(bench.steps.every(({ carriedOver }) => carriedOver)).toBe(true);
  });

  test("does not undo what was found done, and nobody of us did", async () => {
    const world = new World();
    const { bench } = await failedAt("deploy", world);
    world.byHand = ["create"];
    next(bench, "rerun");
    world.fails = { check: final("no") };
    await bench.untilEnd();
    world.fails = {};
    world.unmade.length = 0;
    next(bench, "cancel");
    await bench.untilEnd();
    // What the first attempt made is undone all the same, after what came later.
    expect(world.unmade).toEqual(["deploy-6", "create-1"]);
  });

  test("ends although a device does not answer: what it could not undo is listed, and kept for the next attempt", async () => {
    const { bench, world } = await failedAt("check");
    world.undo.deploy = nobodyAnswers;
    next(bench, "cancel");
    expect(done(await bench.untilEnd())).toBe("canceled");
    expect(world.unmade).toEqual(["create-1"]);
    expect(bench.residue).toEqual([expect.stringContaining("deploy: "), "format: what was on the disk is gone"]);
    world.undo = {};
    next(bench, "rerun");
    expect(bench.takeBackFirst).toMatchObject({ step: "deploy", receipt: { part: "deploy-4" } });
    expect(bench.doneBefore.map(({ step }) => step)).toEqual(["look"]);
  });

  test("waits for a device that undoes by itself, as long as the stage may take", async () => {
    const { bench, world } = await failedAt("check");
    let asked = 0;
    world.undo.deploy = () => {
      asked += 1;
      return asked < 4 ? { goesOn: "is being released" } : undefined;
    };
    next(bench, "cancel");
    expect(await bench.pass()).toMatchObject({ type: "waiting", reason: "compensating: deploy: is being released" });
    expect(done(await bench.untilEnd())).toBe("canceled");
    expect(asked).toBe(4);
    expect(world.unmade).toEqual(["deploy-4", "create-1"]);
    expect(bench.residue).toEqual(["format: what was on the disk is gone"]);
  });

  test("asks again for what got no answer when the attempt before it ended", async () => {
    const world = new World();
    world.armed = "deploy";
    world.undo.deploy = nobodyAnswers;
    const { bench } = await failedAt("check", world);
    expect(bench.steps[3]).toMatchObject({ name: "deploy", takenBack: true, toTakeBack: { nth: 3 } });
    world.undo = {};
    next(bench, "cancel");
    expect(done(await bench.untilEnd())).toBe("canceled");
    expect(world.unmade).toEqual(["deploy-4", "create-1"]);
    expect(bench.steps[3]).toMatchObject({ takenBack: true, toTakeBack: null });
  });

  test("lists what got no answer, neither when the attempt before it ended nor now", async () => {
    const world = new World();
    world.armed = "deploy";
    world.undo.deploy = nobodyAnswers;
    const { bench } = await failedAt("check", world);
    next(bench, "cancel");
    expect(done(await bench.untilEnd())).toBe("canceled");
    expect(bench.residue).toEqual([expect.stringContaining("deploy: "), "format: what was on the disk is gone"]);
    next(bench, "rerun");
    expect(bench.takeBackFirst).toMatchObject({ step: "deploy", receipt: { part: "deploy-4" } });
  });

  test("does not wait for it without end", async () => {
    const { bench, world } = await failedAt("check");
    world.undo.deploy = () => ({ goesOn: "is being released" });
    next(bench, "cancel");
    const since = bench.now.getTime();
    expect(done(await bench.untilEnd(200))).toBe("canceled");
    expect(bench.now.getTime() - since).toBeLessThan(minutes(2));
    expect(bench.residue[0]).toBe("deploy: is being released (not done within 1m)");
    expect(world.unmade).toEqual(["create-1"]);
  });
});

describe("a cancel of a stage that was entered again", () => {
  /** `deploy` was done in its second round; what its first one left is listed on the machine, since the device refused to undo it. */
  async function doneAgain(world: World): Promise<Bench> {
    const { bench } = await failedAt("check", world);
    bench.steps = bench.steps.map((visit) => (visit.name === "deploy" ? { ...visit, round: 2 } : visit));
    const refused = { how: "refused", why: "not allowed" } as const;
    const what = "may have left something behind";
    const { residue, residueRecords } = residueFacts([{ step: "deploy", what, notUndone: refused }]);
    Object.assign(bench, { machineResidue: residue, machineResidueRecords: residueRecords });
    return next(bench, "cancel");
  }
  const REFUSED = "deploy: may have left something behind (undoing it was refused: not allowed)";

  test("lists what an earlier round left, also where the later one was undone", async () => {
    const world = new World();
    const bench = await doneAgain(world);
    expect(done(await bench.untilEnd())).toBe("canceled");
    expect(world.unmade).toEqual(["deploy-4", "create-1"]);
    expect(bench.machineResidue).toContain(REFUSED);
  });

  test("says in which round it was done, and the attempt after goes by that round", async () => {
    const world = new World();
    world.undo.deploy = nobodyAnswers;
    const bench = await doneAgain(world);
    expect(done(await bench.untilEnd())).toBe("canceled");
    const line = "deploy (round 2): may have left something behind (undoing it failed: nobody answers)";
    expect(bench.residue).toContain(line);
    expect(bench.machineResidue).toEqual(expect.arrayContaining([REFUSED, line]));
    world.undo = {};
    next(bench, "rerun");
    expect(bench.takeBackFirst).toMatchObject({ step: "deploy", round: 2 });
    expect(done(await bench.untilEnd())).toBe("finished");
    expect(bench.machineResidue).not.toContain(line);
  });
});

describe("a cancel on a server that lacks what the undo needs", () => {
  const isNobodys = (bench: Bench) => {
    bench.workflows = new Map();
    return bench;
  };

  test("waits for a server that knows the workflow", async () => {
    const { bench, world } = await failedAt("check");
    const { workflows } = bench;
    isNobodys(next(bench, "cancel"));
    expect(await bench.pass()).toMatchObject({
      type: "waiting",
      reason: "compensating: this server does not know workflow building",
    });
    bench.workflows = workflows;
    expect(done(await bench.untilEnd())).toBe("canceled");
    expect(world.unmade).toEqual(["deploy-4", "create-1"]);
  });

  test("ends where none comes: all that may be left is listed, and is undone by the attempt after", async () => {
    const world = new World();
    const bench = benchOf(world);
    const { workflows } = bench;
    await announced(bench, "check");
    bench.cancelRequestedAt = bench.now;
    expect(done(await isNobodys(bench).untilEnd(200))).toBe("canceled");
    expect(bench.now.getTime() - (bench.cancelRequestedAt?.getTime() ?? 0)).toBeLessThan(minutes(20));
    expect(world.unmade).toEqual([]);
    const why = "may have left something behind (undoing it failed: this server does not know workflow building)";
    expect(bench.residue).toEqual(NAMES.map((name) => `${name}: ${why}`));
    expect(bench.machineResidue).toEqual(bench.residue);
    bench.workflows = workflows;
    next(bench, "restart_clean");
    expect(done(await bench.untilEnd())).toBe("finished");
    expect(world.unmade).toEqual(["check", "deploy-4", "create-1"]);
  });

  test("ends where none has the kind of step: what it may have left is listed, and kept", async () => {
    const { bench, world } = await failedAt("check");
    next(bench, "cancel");
    bench.kinds = bench.kinds?.filter(({ kind }) => kind !== "deploy");
    expect(await bench.pass()).toMatchObject({
      type: "waiting",
      reason: expect.stringContaining("this server does not know the step kind deploy"),
    });
    expect(world.unmade).toEqual([]);
    expect(done(await bench.untilEnd(200))).toBe("canceled");
    expect(world.unmade).toEqual(["create-1"]);
    expect(bench.residue).toEqual([
      expect.stringMatching(/^deploy: .*this server does not know the step kind deploy/),
      "format: what was on the disk is gone",
    ]);
    next(bench, "rerun");
    expect(bench.takeBackFirst).toMatchObject({ step: "deploy", receipt: { part: "deploy-4" } });
  });
});

describe("a restart from clean", () => {
  test("compensates first, and begins with the first stage then", async () => {
    const { bench, world } = await failedAt("check");
    next(bench, "restart_clean");
    expect(jobStateWhile(bench, "PENDING")).toBe("pending");
    expect(jobStateWhile(bench)).toBe("compensating");
    expect(bench.residue).toEqual(["format: what was on the disk is gone"]);
    await bench.pass();
    expect(jobStateWhile(bench)).toBe("running");
    expect(world.unmade).toEqual(["deploy-4", "create-1"]);
    expect(done(await bench.untilEnd())).toBe("finished");
    expect(world.made.slice(4)).toEqual(["create", "look", "format", "deploy", "check"]);
  });

  test("undoes no stage before the undo of the stage after it is over, and gives each its time", async () => {
    const { bench, world } = await failedAt("check");
    const since = bench.now.getTime();
    const busyFor = (time: number) => () =>
      bench.now.getTime() - since < time ? { goesOn: "is being released" } : undefined;
    world.undo = { deploy: busyFor(seconds(50)), create: busyFor(seconds(320)) };
    next(bench, "restart_clean");
    expect(await bench.pass()).toMatchObject({ type: "waiting", cause: { code: "undo_in_progress" } });
    expect(world.unmade).toEqual([]);
    expect(done(await bench.untilEnd(100))).toBe("finished");
    expect(world.unmade).toEqual(["deploy-4", "create-1"]);
  });

  test("leaves the stages before one that is not undone as they are, and the attempt after goes on from there", async () => {
    const { bench, world } = await failedAt("check");
    world.undo.deploy = nobodyAnswers;
    next(bench, "restart_clean");
    expect(done(await bench.untilEnd(100))).toBe("step_failed");
    expect(world.unmade).toEqual([]);
    expect(bench).toMatchObject({ takeBackFirst: { step: "deploy" }, compensateFirst: { step: "create" } });
    world.undo = {};
    next(bench, "retry");
    expect(done(await bench.untilEnd())).toBe("finished");
    expect(world.unmade).toEqual(["deploy-4", "create-1"]);
  });

  test("fails where a device does not answer, and what is left is for the attempt after", async () => {
    const { bench, world } = await failedAt("check");
    world.undo.create = nobodyAnswers;
    next(bench, "restart_clean");
    expect(done(await bench.untilEnd(500))).toBe("step_failed");
    expect(bench.takeBackFirst).toMatchObject({ step: "create", receipt: { part: "create-1" } });
    expect(world.made).toHaveLength(4);
  });
});

describe("a restart from clean that is canceled", () => {
  test("undoes what it was to undo, whenever the cancel comes", async () => {
    for (let passes = 0; passes < 4; passes += 1) {
      const { bench, world } = await failedAt("check");
      let asked = 0;
      world.undo.deploy = () => {
        asked += 1;
        return asked < 3 ? { goesOn: "is being released" } : undefined;
      };
      next(bench, "restart_clean");
      for (let made = 0; made < passes; made += 1) await bench.pass();
      bench.cancelRequestedAt = bench.now;
      expect(done(await bench.untilEnd()), `canceled after pass ${passes}`).toBe("canceled");
      expect(world.unmade.toSorted().slice(-2)).toEqual(["create-1", "deploy-4"]);
      expect(bench.residue).toEqual(["format: what was on the disk is gone"]);
      expect(bench).toMatchObject({ compensateFirst: null, takeBackFirst: null });
    }
  });

  test("lists what a device did not undo, and keeps it for the next attempt", async () => {
    const { bench, world } = await failedAt("check");
    world.undo.deploy = nobodyAnswers;
    next(bench, "restart_clean");
    bench.cancelRequestedAt = bench.now;
    expect(done(await bench.untilEnd())).toBe("canceled");
    expect(world.unmade).toEqual(["create-1"]);
    expect(bench.residue).toEqual(["format: what was on the disk is gone", expect.stringContaining("deploy: ")]);
    next(bench, "restart_clean");
    expect(bench).toMatchObject({ compensateFirst: null, takeBackFirst: { step: "deploy" } });
  });

  test("is begun to undo, where the cancel came before it began", async () => {
    const { bench } = await failedAt("check");
    for (const action of ["restart_clean", "rerun", "retry"] as const) {
      next(bench, action);
      bench.cancelRequestedAt = bench.now;
      expect(decide(runLifecycle, { ...bench.run(), state: { name: "PENDING" } }), action).toEqual({ kind: "handle" });
    }
    const first = benchOf(new World());
    first.cancelRequestedAt = first.now;
    expect(decide(runLifecycle, { ...first.run(), state: { name: "PENDING" } })).toMatchObject({
      move: { to: "CANCELED" },
    });
  });

  test("and one that never began, leave to the attempt after it what they were to undo", async () => {
    const { bench } = await failedAt("check");
    next(bench, "restart_clean");
    const { compensateFirst } = bench;
    const inheriting = (action: WorkflowAction) =>
      inheritStages({ ...bench.run(), ...bench.run().facts }, action, building);
    for (const action of ["restart_clean", "retry", "resume"] as const)
      expect(inheriting(action), action).toMatchObject({ compensateFirst, doneBefore: [] });
    for (const action of ["rerun", "cancel", "adopt"] as const)
      expect(inheriting(action), action).toMatchObject({
        compensateFirst: null,
        doneBefore: [{ step: "create" }, { step: "deploy" }],
      });
  });
});

describe("an attempt after a failed one", () => {
  test("retries the stage at which it failed", async () => {
    const { bench, world } = await failedAt("deploy");
    next(bench, "retry");
    expect(done(await bench.untilEnd())).toBe("finished");
    expect(world.made).toEqual(["create", "look", "format", "deploy", "check"]);
    expect(visitsOf(bench)).toEqual(NAMES.map((name) => `${name} 1 SUCCEEDED`));
  });

  test("resumes from the last safe stage, in a round of its own", async () => {
    const { bench, world } = await failedAt("deploy");
    next(bench, "resume");
    expect(done(await bench.untilEnd())).toBe("finished");
    expect(world.made).toEqual(["create", "look", "format", "create", "look", "format", "deploy", "check"]);
    expect(visitsOf(bench)).toEqual([
      "create 1 SUCCEEDED",
      "look 1 SUCCEEDED",
      "format 1 SUCCEEDED",
      "deploy 1 FAILED",
      "create 2 SUCCEEDED",
      "look 2 SUCCEEDED",
      "format 2 SUCCEEDED",
      "deploy 2 SUCCEEDED",
      "check 1 SUCCEEDED",
    ]);
  });

  test("adopts what people did, and goes on where something is missing", async () => {
    const { bench, world } = await failedAt("format");
    world.byHand = ["format", "deploy"];
    next(bench, "adopt");
    expect(done(await bench.untilEnd())).toBe("finished");
    expect(world.made).toEqual(["create", "look", "check"]);
    expect(jobStateWhile(bench, "SUCCEEDED")).toBe("reconciled");
  });

  test("reruns from the first stage without doing again what is done", async () => {
    const { bench, world } = await failedAt("check");
    world.byHand = ["create", "format"];
    next(bench, "rerun");
    expect(done(await bench.untilEnd())).toBe("finished");
    expect(world.made.slice(4)).toEqual(["look", "deploy", "check"]);
  });
});

describe("people who take over a workflow that goes on", () => {
  test("stop it after its present stage; the next attempt goes on after that", async () => {
    const world = new World();
    const bench = benchOf(world);
    await announced(bench, "format");
    bench.manual = { at: bench.now, by: "ann", comment: "the disk is odd" };
    expect(await bench.untilEnd()).toMatchObject({
      event: "step_failed",
      message: "deploy: not entered, since ann took the job over: the disk is odd",
      facts: { error: { retryable: false } },
    });
    expect(world.made).toEqual(["create", "look", "format"]);
    expect(jobStateWhile(bench, "FAILED")).toBe("failed_manual_intervention");
    next(bench, "retry");
    expect(done(await bench.untilEnd())).toBe("finished");
    expect(world.made).toEqual(["create", "look", "format", "deploy", "check"]);
  });
});
