import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { type Run, Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { RunActionsService } from "../../../contract/millwright/v1/run_pb.js";
import { AppError } from "../../../src/kernel/errors.ts";
import type { RunDeps } from "../../../src/services/run/deps.ts";
import { markRunManual } from "../../../src/services/run/operator-actions.ts";
import { getRun, type Run as RunRecord } from "../../../src/services/run/read.ts";
import { startWorkflow } from "../../../src/services/run/workflow-starts.ts";
import type { ThingStore } from "../../../src/store/lifecycle/things.ts";
import { eventually } from "../../support/eventually.ts";
import { addRig, createRigTables, type Rig, rigStore } from "../../support/rigs/rig.ts";
import { rigStores } from "../../support/rigs/rig-engine.ts";
import { type RunSurface, startRunSurface, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type AssemblyParams, assemblySteps, assemblyWorkflows } from "../../support/workflows/assembly.ts";
import { PartServer } from "../../support/workflows/part-server.ts";

/** The operator's actions on jobs of workflows, on PostgreSQL and against a server that makes parts. */
let surface: RunSurface;
let parts: PartServer;
let deps: RunDeps;
let count = 0;
beforeAll(async () => {
  parts = await PartServer.start();
  surface = await startRunSurface({ steps: assemblySteps, workflows: assemblyWorkflows, controller: true });
  const unused = { runbooks: undefined as never, capabilitiesOf: () => new Set<never>() };
  deps = { ...surface.runDeps, ...unused };
});
afterAll(async () => {
  await surface.close();
  await parts.close();
});

const actions = () => surface.client(RunActionsService);

interface Job {
  readonly job: string;
  readonly machineId: string;
  readonly run: RunRecord;
}

async function start(more: Partial<AssemblyParams> = {}): Promise<Job> {
  count += 1;
  const job = `job-${count}`;
  const machineId = await surface.addMachine(`m-${count}`);
  const params = { parts: parts.url, job, ...more };
  const target = { kind: "machine", id: machineId };
  const run = await startWorkflow(deps, tester, { workflow: "assembly", target, requestId: "once", params });
  return { job, machineId, run };
}

const ended = (id: string): Promise<Run> => surface.ended(id);
const jobState = async (id: string) => (await surface.runs.getRun({ runId: id })).jobState;
const visitsOf = (run: RunRecord) => run.steps.map(({ name, round, state }) => `${name} ${round} ${state}`);
const runOf = ({ run }: { run?: Run | undefined }): Run => {
  if (!run) throw new Error("there is no run in the answer");
  return run;
};
let requests = 0;
const request = (runId: string) => ({ runId, requestId: `request-${++requests}` });

/** A job that fails at its last stage, after it went back once. */
async function failed(): Promise<Job> {
  const job = await start({ crooked: "1", broken: "roof" });
  expect((await ended(job.run.id)).phase).toBe(Run_Phase.FAILED);
  return job;
}
/** What is broken is put right: params never change, so that this job is told by another way. */
const MADE_BY_FAILED = ["made base", "made frame", "unmade frame", "made base", "made frame"];

describe("a job of a workflow", () => {
  test("goes back a stage, skips one, and comes to its end", async () => {
    const { job, run } = await start({ crooked: "1" });
    expect((await ended(run.id)).phase).toBe(Run_Phase.SUCCEEDED);
    expect(parts.deedsOf(job)).toEqual([...MADE_BY_FAILED, "made roof"]);
    expect(visitsOf(await getRun(deps, run.id))).toEqual([
      "base 1 SUCCEEDED",
      "paint 1 SKIPPED",
      "frame 1 FAILED",
      "inspect 1 SUCCEEDED",
      "base 2 SUCCEEDED",
      "paint 2 SKIPPED",
      "frame 2 SUCCEEDED",
      "roof 1 SUCCEEDED",
    ]);
    expect(await jobState(run.id)).toBe("completed");
  });

  test("is shown by baremetal.v1 with its visits in their order, and a skipped stage as one that is over", async () => {
    const { run } = await start();
    const shown = await ended(run.id);
    expect(shown.steps.map(({ name, message }) => `${name}: ${message}`)).toEqual([
      expect.stringContaining("base: part-"),
      "paint: skipped: nobody asked for a colour",
      expect.stringContaining("frame: part-"),
      expect.stringContaining("roof: part-"),
    ]);
  });

  test("is started once for a request, and one at a time on a thing", async () => {
    const { machineId, run, job } = await start({ broken: "roof" });
    const target = { kind: "machine", id: machineId };
    const params = { parts: parts.url, job, broken: "roof" };
    const again = { workflow: "assembly", target, requestId: "once", params };
    expect((await startWorkflow(deps, tester, again)).id).toBe(run.id);
    await expect(startWorkflow(deps, tester, { ...again, params: {} })).rejects.toMatchObject({
      kind: "already_exists",
    });
    await ended(run.id);
  });
});

test("whether a target takes a run, and whose slot that takes, is for its kind to say", async () => {
  await createRigTables(surface.db);
  const id = await surface.addMachine("m-of-rig");
  const kind = (broken: boolean): ThingStore<Rig> => ({
    ...rigStore,
    takesRuns: {
      slotOf: () => ({ machineId: id }),
      whyNoRun: (rig) => (broken ? [new AppError("failed_precondition", `rig ${rig.id} is in pieces`)] : []),
    },
  });
  const withRigs = (broken: boolean): RunDeps => ({
    ...deps,
    stores: new Map([...deps.stores, ["rig", kind(broken) as unknown as ThingStore]]),
  });
  await addRig(surface.db, rigStores, "rig-of-workflow", 1);
  const target = { kind: "rig", id: "rig-of-workflow" };
  const asked = { workflow: "assembly", target, requestId: "once", params: { parts: parts.url, job: "of-rig" } };
  await expect(startWorkflow(withRigs(true), tester, asked)).rejects.toMatchObject({
    kind: "failed_precondition",
    message: "rig rig-of-workflow is in pieces",
  });
  const run = await startWorkflow(withRigs(false), tester, asked);
  expect(run).toMatchObject({ target, machineId: id });
});

test("a workflow is not started on a machine that is RETIRED, nor goes on there", async () => {
  const { machineId, run, job } = await failed();
  await surface.lifecycle.retireMachine({ machineId });
  const params = { parts: parts.url, job };
  const target = { kind: "machine", id: machineId };
  const again = startWorkflow(deps, tester, { workflow: "assembly", target, requestId: "again", params });
  await expect(again).rejects.toMatchObject({ kind: "failed_precondition" });
  await refused(actions().retryRun(request(run.id)), "is RETIRED");
});

describe("a failed job", () => {
  test("is canceled by an attempt that undoes every stage, the last first", async () => {
    const { job, run } = await failed();
    expect(await jobState(run.id)).toBe("failed_retryable");
    const asked = request(run.id);
    const undoing = runOf(await actions().cancelJob(asked));
    expect(undoing).toMatchObject({ action: "cancel", previousRunId: run.id, attempt: 2 });
    expect(runOf(await actions().cancelJob(asked)).runId).toBe(undoing.runId);
    expect((await ended(undoing.runId)).phase).toBe(Run_Phase.CANCELED);
    expect(parts.deedsOf(job).slice(MADE_BY_FAILED.length)).toEqual(["unmade frame", "unmade base", "unmade base"]);
    expect(parts.partsOf(job)).toEqual([]);
    expect(await jobState(undoing.runId)).toBe("cancelled");
    expect(await surface.db.query("select * from claims")).toEqual([]);
  });

  test("is restarted from clean: it compensates, and then begins with the first stage", async () => {
    const { job, run } = await failed();
    const again = runOf(await actions().restartRunClean(request(run.id)));
    await ended(again.runId);
    const deeds = parts.deedsOf(job).slice(MADE_BY_FAILED.length);
    expect(deeds.slice(0, 3)).toEqual(["unmade frame", "unmade base", "unmade base"]);
    expect(deeds.slice(3)).toEqual(["made base", "made frame"]);
    const states = await surface.db.query<{ told: string }>(
      "select data -> 'facts' ->> 'startedAt' as told from journal where kind = 'run' and id = $1 and type = 'transition'",
      [again.runId],
    );
    expect(states.length).toBeGreaterThan(1);
  });

  test("is resumed from the last safe stage, and retried at the stage that failed", async () => {
    const first = await failed();
    const retried = runOf(await actions().retryRun(request(first.run.id)));
    await ended(retried.runId);
    expect(parts.deedsOf(first.job)).toEqual(MADE_BY_FAILED);
    const resumed = runOf(await actions().resumeRun(request(retried.runId)));
    await ended(resumed.runId);
    expect(parts.deedsOf(first.job)).toEqual([...MADE_BY_FAILED, "made base", "made frame"]);
    expect(visitsOf(await getRun(deps, resumed.runId)).slice(-4)).toEqual([
      "base 3 SUCCEEDED",
      "paint 3 SKIPPED",
      "frame 3 SUCCEEDED",
      "roof 2 FAILED",
    ]);
  });

  test("is not acted on under the request id of another job on the same machine", async () => {
    const first = await failed();
    const { job, machineId } = first;
    const params = { parts: parts.url, job, broken: "roof" };
    const other = { workflow: "assembly", target: { kind: "machine", id: machineId }, requestId: "other", params };
    await ended((await startWorkflow(deps, tester, other)).id);
    const again = actions().retryRun({ runId: first.run.id, requestId: "other" });
    await expect(again).rejects.toMatchObject({ code: Code.AlreadyExists });
  });

  test("is taken over by people", async () => {
    const { run } = await failed();
    await actions().markRunManual({ runId: run.id, comment: "no roof today" });
    expect(await jobState(run.id)).toBe("failed_manual_intervention");
  });
});

describe("a job that goes on", () => {
  /** One whose parts are not made until the test says so. */
  async function held(): Promise<Job & { release(): void }> {
    const gate = Promise.withResolvers<void>();
    parts.hold("frame", gate.promise);
    const job = await start();
    await eventually(async () => parts.waiting > 0, { what: "the frame is being made" });
    return { ...job, release: () => gate.resolve() };
  }

  test("is resumed without effect", async () => {
    const { run, release } = await held();
    expect(runOf(await actions().resumeRun(request(run.id))).runId).toBe(run.id);
    release();
    expect((await ended(run.id)).phase).toBe(Run_Phase.SUCCEEDED);
  });

  test("stops after its present stage when people take it over, and is failed then", async () => {
    const { job, run, release } = await held();
    await markRunManual(deps, tester, { runId: run.id, comment: "the frame is odd" });
    release();
    const stopped = await ended(run.id);
    expect(stopped.phase).toBe(Run_Phase.FAILED);
    expect(stopped.error?.message).toBe("roof: not entered, since tester took the job over: the frame is odd");
    expect(stopped.jobState).toBe("failed_manual_intervention");
    expect(parts.deedsOf(job)).toEqual(["made base", "made frame"]);
    const again = runOf(await actions().retryRun(request(run.id)));
    expect((await ended(again.runId)).phase).toBe(Run_Phase.SUCCEEDED);
    expect(parts.deedsOf(job)).toEqual(["made base", "made frame", "made roof"]);
  }, 90_000);

  test("is canceled: what it has made is undone", async () => {
    const { job, run, release } = await held();
    runOf(await actions().cancelJob(request(run.id)));
    release();
    expect((await ended(run.id)).phase).toBe(Run_Phase.CANCELED);
    expect(parts.partsOf(job)).toEqual([]);
    await refused(actions().resumeRun(request(run.id)), "is cancelled: resume is for jobs that are failed_retryable");
    const again = runOf(await actions().rerunRun(request(run.id)));
    expect((await ended(again.runId)).phase).toBe(Run_Phase.SUCCEEDED);
  }, 90_000);
});

async function refused(answer: Promise<unknown>, why: string): Promise<void> {
  const error = await answer.then(
    () => undefined,
    (reason: unknown) => ConnectError.from(reason),
  );
  expect(error?.code).toBe(Code.FailedPrecondition);
  expect(error?.message).toContain(why);
}

test("nothing is done any more to a job that has come to its end", async () => {
  const { run } = await start();
  await ended(run.id);
  const one = request(run.id);
  const call = actions();
  await refused(call.retryRun(one), "is completed");
  await refused(call.resumeRun(one), "is completed");
  await refused(call.rerunRun(one), "is completed");
  await refused(call.restartRunClean(one), "is completed");
  await refused(call.adoptRun(one), "is completed");
  await refused(call.cancelJob(one), "has already ended");
  await refused(call.markRunManual({ runId: run.id, comment: "why" }), "is SUCCEEDED");
});
