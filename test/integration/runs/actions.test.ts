import { Code, ConnectError } from "@connectrpc/connect";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Run_Phase, StepStatus_State } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { ErrorInfoSchema } from "../../../contract/millwright/v1/error_info_pb.js";
import { RunActionsService } from "../../../contract/millwright/v1/run_pb.js";
import type { Capability } from "../../../src/capabilities/provider.ts";
import { jobStateOf } from "../../../src/runs/model/job-state.ts";
import { RUN_ACTIONS, RUN_PHASES } from "../../../src/runs/model/run.ts";
import { createImage } from "../../../src/services/catalog/images.ts";
import { matchesRun, parseRunFilter, runCondition } from "../../../src/services/run/filter.ts";
import { watchRuns } from "../../../src/services/run/watch.ts";
import type { EventSource } from "../../../src/services/system/watch.ts";
import { JOB_STATE } from "../../../src/store/run/job-state-sql.ts";
import { getLatestAttempt, listRuns } from "../../../src/store/run/runs.ts";
import { insertNode, placeNode } from "../../support/fleet/fleet-node.ts";
import { collect, type RunSurface, startRunSurface, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** What people do with runs, with nobody who carries runs out, so that each stays where it was put. */
const ALL: readonly Capability[] = ["reset", "system", "exec", "boot", "imaging", "cluster", "locator", "power"];
let can: readonly Capability[] = ALL;
const IMAGE = {
  ...{ name: "plain:1", kind: "iso", location: "https://images.example/plain.iso", successProof: "" },
  digest: `sha256:${"0".repeat(64)}`,
} as const;

let surface: RunSurface;
beforeAll(async () => {
  surface = await startRunSurface({ capabilitiesOf: () => new Set(can) });
  await createImage(surface.deps, tester, IMAGE);
});
afterAll(() => surface.close());

const actions = () => surface.client(RunActionsService);
type Verb = "retryRun" | "resumeRun" | "rerunRun" | "restartRunClean" | "adoptRun";
const VERBS: readonly Verb[] = ["retryRun", "resumeRun", "rerunRun", "restartRunClean", "adoptRun"];
const act = async (verb: Verb, runId: string, requestId = `request-${++count}`) => {
  const { run } = await actions()[verb]({ runId, requestId });
  if (!run) throw new Error(`${verb} answered without a run`);
  return run;
};

/** Code, field, message and the next command of a call that must fail. */
async function refusal(call: Promise<unknown>) {
  const failure = await call.then(
    () => undefined,
    (error: unknown) => ConnectError.from(error),
  );
  if (!failure) throw new Error("the call succeeded");
  const [info] = failure.findDetails(ErrorInfoSchema);
  return { code: failure.code, field: info?.field ?? "", next: info?.next ?? "", message: failure.rawMessage };
}

let count = 0;
const machine = () => surface.addMachine(`m-${++count}`);
const reboot = (machineId: string) =>
  surface.runs.startRun({ requestId: `start-${++count}`, machineId, type: "REBOOT" });

/** Puts a run where it would be after being worked on. */
async function put(runId: string, state: string, facts: object = {}): Promise<void> {
  await surface.db.execute("update runs set state = $2, facts = facts || $3::jsonb where id = $1", [
    runId,
    state,
    JSON.stringify(facts),
  ]);
}

const step = (name: string, state: string, more: object = {}) => ({
  name,
  kind: "reboot",
  state,
  retryCount: 0,
  message: "",
  carriedOver: false,
  evidence: { bootId: "b", lastReset: null },
  startedAt: "2026-01-01T00:00:00.000Z",
  finishedAt: "2026-01-01T00:01:00.000Z",
  ...more,
});

const TWO_STEPS = "plan-of-two-steps";
async function failedAtTwo(): Promise<{ runId: string; machineId: string }> {
  const machineId = await machine();
  const kind = { case: "reboot", value: {} } as const;
  await surface.plans.createPlan({
    plan: {
      planId: TWO_STEPS,
      steps: [
        { name: "one", kind },
        { name: "two", kind },
      ],
    },
  });
  const { runId } = await surface.runs.startRun({ requestId: "start", machineId, planId: TWO_STEPS });
  await put(runId, "FAILED", {
    steps: [step("one", "SUCCEEDED"), step("two", "FAILED", { message: "no answer", retryCount: 2 })],
    error: { code: "EXECUTION_FAILED", message: "two: no answer", retryable: true, details: {} },
  });
  return { runId, machineId };
}

async function failed(): Promise<string> {
  const { runId } = await reboot(await machine());
  await put(runId, "FAILED");
  return runId;
}

describe("the next attempt at a job", () => {
  test("is a run of its own with the plan, type and params of the one before", async () => {
    const machineId = await machine();
    const first = await surface.runs.startRun({
      requestId: "start",
      machineId,
      type: "RMA",
      params: { ticket: "T-1" },
    });
    await put(first.runId, "FAILED");
    const run = await act("retryRun", first.runId);
    expect(run).toMatchObject({
      machineId,
      type: "RMA",
      planId: "plan/rma",
      params: { ticket: "T-1" },
      phase: Run_Phase.PENDING,
      jobId: first.jobId,
      attempt: 2,
      previousRunId: first.runId,
      action: "retry",
      jobState: "pending",
    });
    expect(run.runId).not.toBe(first.runId);
    const before = await surface.runs.getRun({ runId: first.runId });
    expect(before).toMatchObject({ nextRunId: run.runId, jobState: "", attempt: 1 });
    expect(before.version).toBeGreaterThan(first.version);
  });

  test.each([
    ["retryRun", [{ name: "one", carriedOver: true, state: StepStatus_State.SUCCEEDED }]],
    [
      "resumeRun",
      [
        { name: "one", carriedOver: true, state: StepStatus_State.SUCCEEDED },
        { name: "two", carriedOver: false, state: StepStatus_State.WAITING, retryCount: 0, message: "" },
      ],
    ],
    [
      "adoptRun",
      [
        { name: "one", carriedOver: true },
        { name: "two", carriedOver: false, state: StepStatus_State.WAITING },
      ],
    ],
    ["rerunRun", []],
    ["restartRunClean", []],
  ] as const)("by %s has what it should of the one before", async (verb, steps) => {
    const { runId } = await failedAtTwo();
    const run = await act(verb, runId);
    expect(run.steps).toHaveLength(steps.length);
    expect(run.steps).toMatchObject(steps);
    expect(run.plan?.steps.map(({ name }) => name)).toEqual(["one", "two"]);
  });

  test("undoes what was left although the one before was canceled before it could", async () => {
    const { runId } = await failedAtTwo();
    const left = { step: "two", evidence: { bootId: "b" } };
    await surface.db.execute(
      "update runs set facts = jsonb_set(facts, '{steps,1,toTakeBack}', $2::jsonb) where id = $1",
      [runId, JSON.stringify(left.evidence)],
    );
    const takeBackFirst = async (id: string) =>
      (await surface.db.query("select facts -> 'takeBackFirst' as left from runs where id = $1", [id]))[0]?.left;
    let latest = (await act("retryRun", runId)).runId;
    expect(await takeBackFirst(latest)).toEqual(left);
    for (const verb of ["resumeRun", "restartRunClean", "rerunRun", "resumeRun"] as const) {
      await put(latest, "CANCELED"); // while it was PENDING: nobody ever looked at it
      latest = (await act(verb, latest)).runId;
      expect(await takeBackFirst(latest), verb).toEqual(left);
    }
  });

  test("knows how far the log of the one before has what a script wrote", async () => {
    const { runId } = await failedAtTwo();
    const heard = { mark: "m1", stdout: 12, stderr: 3 };
    await put(runId, "FAILED", { heard });
    const run = await act("resumeRun", runId);
    const [row] = await surface.db.query("select facts -> 'heard' as heard from runs where id = $1", [run.runId]);
    expect(row).toEqual({ heard });
  });

  test("is told in the history of the one before, and of itself", async () => {
    const runId = await failed();
    const run = await act("rerunRun", runId);
    const rows = await surface.db.query<{ id: string; type: string; reason: string | null }>(
      "select id, type, reason from journal where kind = 'run' and id = any($1) and reason is not null order by xid, seq",
      [[runId, run.runId]],
    );
    expect(rows).toEqual([
      { id: run.runId, type: "created", reason: `rerun of ${runId}` },
      { id: runId, type: "continued", reason: `rerun as ${run.runId}` },
    ]);
  });
});

describe.each(VERBS)("%s refuses", (verb) => {
  test("a missing run_id and a missing request_id", async () => {
    expect(await refusal(act(verb, "", "r"))).toMatchObject({ code: Code.InvalidArgument, field: "run_id" });
    expect(await refusal(act(verb, await failed(), ""))).toMatchObject({
      code: Code.InvalidArgument,
      field: "request_id",
    });
  });

  test("an unknown run", async () => {
    expect((await refusal(act(verb, "run-nobody"))).code).toBe(Code.NotFound);
  });

  test("a run that is still active, and says how to end it", async () => {
    const { runId } = await reboot(await machine());
    const answer = await refusal(act(verb, runId));
    expect(answer).toMatchObject({ code: Code.FailedPrecondition, next: `millwright run cancel ${runId}` });
    expect(answer.message).toContain("PENDING");
  });

  test("an attempt that is not the latest, and names the latest with the command for it", async () => {
    const runId = await failed();
    const second = await act("rerunRun", runId);
    await put(second.runId, "FAILED");
    const third = await act("rerunRun", second.runId);
    await put(third.runId, "FAILED");
    const answer = await refusal(act(verb, runId));
    expect(answer.code).toBe(Code.FailedPrecondition);
    expect(answer.message).toContain(third.runId);
    expect(answer.next).toMatch(new RegExp(`^millwright run (retry|resume|rerun|restart-clean|adopt) ${third.runId}$`));
  });

  test("a machine that is RETIRED or that has another active run", async () => {
    const { runId, machineId } = await failedAtTwo();
    const { runId: other } = await reboot(machineId);
    const answer = await refusal(act(verb, runId));
    expect(answer.code).toBe(Code.FailedPrecondition);
    expect(answer.message).toContain(other);
    await put(other, "SUCCEEDED");
    await surface.lifecycle.retireMachine({ machineId });
    expect((await refusal(act(verb, runId))).message).toContain("RETIRED");
  });

  test("to repave a machine that is a fleet node by now, until the node is removed", async () => {
    const machineId = await machine();
    const repave = { name: "install", kind: { case: "repave", value: { imageRef: IMAGE.name } } } as const;
    await surface.plans.createPlan({ plan: { planId: "plan-of-a-repave", steps: [repave] } });
    const { runId } = await surface.runs.startRun({ requestId: "start", machineId, planId: "plan-of-a-repave" });
    await put(runId, "FAILED");
    const { id } = await insertNode(surface.db, machineId);
    for (const state of ["enrolling", "active", "retired"]) {
      await placeNode(surface.db, id, state);
      expect(await refusal(act(verb, runId)), state).toMatchObject({
        ...{ code: Code.FailedPrecondition, field: "machine_id" },
        next: `millwright fleet decommission ${id} --mode reimage`,
        message: expect.stringContaining(`machine ${machineId} is fleet node ${id} (${state})`),
      });
    }
    expect((await surface.runs.getRun({ runId })).nextRunId).toBe("");
    await placeNode(surface.db, id, "deleted");
    expect((await act(verb, runId)).machineId).toBe(machineId);
  });

  test("what the machine's provider can no longer do", async () => {
    const runId = await failed();
    can = [];
    try {
      expect((await refusal(act(verb, runId))).code).toBe(Code.Unimplemented);
    } finally {
      can = ALL;
    }
    expect((await surface.runs.getRun({ runId })).nextRunId).toBe("");
  });

  test("a request id that asked for something else, and repeats what it did for the same", async () => {
    const runId = await failed();
    const run = await act(verb, runId, "once");
    expect((await act(verb, runId, "once")).runId).toBe(run.runId);
    const other = verb === "rerunRun" ? "resumeRun" : "rerunRun";
    expect(await refusal(act(other, runId, "once"))).toMatchObject({
      code: Code.AlreadyExists,
      field: "request_id",
    });
  });
});

test.each([
  ["retryRun", "SUCCEEDED", "rerun"],
  ["retryRun", "CANCELED", "resume"],
  ["resumeRun", "SUCCEEDED", "rerun"],
  ["restartRunClean", "SUCCEEDED", "rerun"],
  ["adoptRun", "SUCCEEDED", "rerun"],
] as const)("%s of a run that %s is refused with what to do instead: %s", async (verb, state, instead) => {
  const { runId } = await reboot(await machine());
  await put(runId, state);
  expect(await refusal(act(verb, runId))).toMatchObject({
    code: Code.FailedPrecondition,
    next: `millwright run ${instead} ${runId}`,
  });
});

describe("50 at once", { tags: "race" }, () => {
  const fifty = Array.from({ length: 50 }, (_, index) => index);

  test("with one request id make one attempt", async () => {
    const { runId } = await failedAtTwo();
    const runs = await Promise.all(fifty.map(() => act("retryRun", runId, "once")));
    expect(new Set(runs.map((run) => run.runId)).size).toBe(1);
    expect(runs[0]?.attempt).toBe(2);
  });

  test("with 50 request ids make one, and 49 are FAILED_PRECONDITION and name it", async () => {
    const { runId } = await failedAtTwo();
    const outcomes = await Promise.all(
      fifty.map((index) =>
        act(VERBS[index % VERBS.length] as Verb, runId, `request-of-its-own-${index}`).then(
          (run) => ({ made: run.runId, code: undefined, message: "" }),
          async (error) => ({ made: undefined, ...(await refusal(Promise.reject(error))) }),
        ),
      ),
    );
    const made = outcomes.flatMap((outcome) => outcome.made ?? []);
    expect(made).toHaveLength(1);
    const refused = outcomes.filter((outcome) => outcome.made === undefined);
    expect(refused.every(({ code }) => code === Code.FailedPrecondition)).toBe(true);
    expect(refused.every(({ message }) => message.includes(made[0] ?? "nobody"))).toBe(true);
  });
});

describe("a script that has changed since", () => {
  async function failedWithOldScript(): Promise<string> {
    const planId = "plan-of-a-changed-script";
    await surface.plans.createPlan({
      plan: { planId, steps: [{ name: "drain", kind: { case: "ssh", value: { scriptRef: "drain_check.sh" } } }] },
    });
    const { runId } = await surface.runs.startRun({ requestId: "start", machineId: await machine(), planId });
    await put(runId, "FAILED", {
      scripts: { "drain_check.sh": `sha256:${"0".repeat(64)}` },
      steps: [step("drain", "FAILED", { kind: "ssh" })],
    });
    return runId;
  }
  const frozen = async (runId: string) =>
    (
      await surface.db.query<{ scripts: object }>("select facts -> 'scripts' as scripts from runs where id = $1", [
        runId,
      ])
    )[0]?.scripts;

  test.each(["retryRun", "resumeRun", "adoptRun"] as const)("is not slipped in by %s", async (verb) => {
    const runId = await failedWithOldScript();
    const answer = await refusal(act(verb, runId));
    expect(answer).toMatchObject({
      code: Code.FailedPrecondition,
      next: `millwright run retry ${runId} --new-scripts`,
    });
    expect(answer.message).toContain("drain_check.sh");
  });

  test("is taken by a retry that says so, and by whoever begins again", async () => {
    const now = { "drain_check.sh": expect.not.stringContaining("0".repeat(64)) };
    const { run } = await actions().retryRun({
      runId: await failedWithOldScript(),
      requestId: "new",
      takeNewScripts: true,
    });
    expect(await frozen(run?.runId ?? "")).toEqual(now);
    for (const verb of ["rerunRun", "restartRunClean"] as const)
      expect(await frozen((await act(verb, await failedWithOldScript())).runId)).toEqual(now);
  });

  test("does not matter where the step that ran it is carried over", async () => {
    const { runId } = await failedAtTwo();
    await put(runId, "FAILED", { scripts: { "drain_check.sh": "sha256:old" } });
    expect((await act("retryRun", runId)).attempt).toBe(2);
  });
});

test("what the plan names and is not there any more is refused, and changes nothing", async () => {
  const planId = "plan-of-a-lost-image";
  await surface.plans.createPlan({
    plan: { planId, steps: [{ name: "boot", kind: { case: "reboot", value: {} } }] },
  });
  const { runId } = await surface.runs.startRun({ requestId: "start", machineId: await machine(), planId });
  await surface.db.execute(
    `update runs set state = 'FAILED', plan = jsonb_set(plan, '{steps}', '[{"name": "say", "kind": "ssh", "timeoutSeconds": 60, "maxRetries": 0, "payload": {"script_ref": "gone.sh", "args": {}}}]') where id = $1`,
    [runId],
  );
  const answer = await refusal(act("rerunRun", runId));
  expect(answer.code).toBe(Code.FailedPrecondition);
  expect(answer.message).toContain(`step say names the script "gone.sh"`);
  expect((await surface.runs.getRun({ runId })).nextRunId).toBe("");
});

describe("MarkRunManual", () => {
  const mark = (runId: string, comment: string) => actions().markRunManual({ runId, comment });
  const events = (runId: string) =>
    surface.db.query<{ reason: string }>("select reason from journal where id = $1 and type = 'marked_manual'", [
      runId,
    ]);

  test("keeps the comment, is told in the history, and makes the job wait for people", async () => {
    const runId = await failed();
    expect((await surface.runs.getRun({ runId })).jobState).toBe("failed_retryable");
    const { run } = await mark(runId, "  fan broken; Ann replaces it ");
    expect(run).toMatchObject({
      phase: Run_Phase.FAILED,
      jobState: "failed_manual_intervention",
      manual: { comment: "fan broken; Ann replaces it" },
    });
    expect(run?.manual?.at).toBeDefined();
    expect(await events(runId)).toEqual([{ reason: "fan broken; Ann replaces it" }]);
  });

  test("can be repeated; another comment replaces the first", async () => {
    const runId = await failed();
    await mark(runId, "fan broken");
    await mark(runId, "fan broken");
    expect(await events(runId)).toHaveLength(1);
    const { run } = await mark(runId, "fan replaced, cable next");
    expect(run?.manual?.comment).toBe("fan replaced, cable next");
    expect(await events(runId)).toHaveLength(2);
  });

  test("leaves the job to people: they can retry it, and the new attempt is not marked", async () => {
    const runId = await failed();
    await mark(runId, "fan broken");
    const run = await act("retryRun", runId);
    expect(run).toMatchObject({ jobState: "pending", attempt: 2 });
    expect(run.manual).toBeUndefined();
    expect(await refusal(mark(runId, "too late"))).toMatchObject({
      code: Code.FailedPrecondition,
      next: `millwright run show ${run.runId}`,
    });
  });

  test.each([
    ["no comment", " "],
    ["an endless comment", "x".repeat(1_025)],
    ["a comment with control characters", "a\u0007b"],
  ])("refuses %s", async (_, comment) => {
    expect(await refusal(mark(await failed(), comment))).toMatchObject({
      code: Code.InvalidArgument,
      field: "comment",
    });
  });

  test.each(["PENDING", "RUNNING", "SUCCEEDED", "CANCELED"])("refuses a run that is %s", async (state) => {
    const { runId } = await reboot(await machine());
    await put(runId, state);
    const answer = await refusal(mark(runId, "why"));
    expect(answer.code).toBe(Code.FailedPrecondition);
    expect(answer.message).toContain(state);
  });
});

describe("the state of a job", () => {
  test("is the same in the database as in the code, for every run that there can be", async () => {
    const { runId } = await reboot(await machine());
    const anything = fc.record({
      state: fc.constantFrom(...RUN_PHASES),
      action: fc.constantFrom(...RUN_ACTIONS),
      cancel_requested_at: fc.constantFrom(null, "2026-01-01T00:00:00Z"),
      manual_at: fc.constantFrom(null, "2026-01-01T00:00:00Z"),
      next_run_id: fc.constantFrom(null, "run-next"),
      retryable: fc.constantFrom(null, true, false),
      compensateFirst: fc.constantFrom(undefined, null, { step: "a", evidence: {} }),
    });
    await fc.assert(
      fc.asyncProperty(anything, async (row) => {
        const error =
          row.retryable === null
            ? null
            : { code: "EXECUTION_FAILED", message: "", retryable: row.retryable, details: {} };
        await surface.db.execute(
          `update runs set state = $2, action = $3, cancel_requested_at = $4, manual_at = $5, next_run_id = $6, facts = $7
            where id = $1`,
          [
            runId,
            row.state,
            row.action,
            row.cancel_requested_at,
            row.manual_at,
            row.next_run_id,
            // A run is followed by another only once it has ended, and then has nothing left to do first.
            JSON.stringify({ error, ...(row.next_run_id === null && { compensateFirst: row.compensateFirst }) }),
          ],
        );
        const [run] = await listRuns(surface.db, { ids: [runId] });
        const [stored] = await surface.db.query<{ job_state: string }>(
          `select ${JOB_STATE} as job_state from runs t where id = $1`,
          [runId],
        );
        expect(stored?.job_state).toBe((run && jobStateOf(run)) ?? "");
      }),
      { numRuns: 300 },
    );
  });

  test("can be filtered by, and finds each job once", async () => {
    const machineId = await machine();
    const { runId } = await reboot(machineId);
    await put(runId, "FAILED");
    const second = await act("retryRun", runId);
    const list = async (filter: string) =>
      (await surface.runs.listRuns({ filter: `machine_id=${machineId} AND ${filter}` })).runs.map((run) => run.runId);
    expect(await list("job_state=failed_retryable")).toEqual([]);
    expect(await list("job_state=pending")).toEqual([second.runId]);
    await put(second.runId, "FAILED");
    expect(await list("job_state IN (failed_retryable, failed_manual_intervention)")).toEqual([second.runId]);
    expect(await list("action=retry")).toEqual([second.runId]);
    expect((await getLatestAttempt(surface.db, second.jobId))?.id).toBe(second.runId);
  });
});

describe("WatchRuns with a filter", () => {
  type Row = { type: string; from?: string; to?: string; version?: number };
  const watch = async (runId: string, filter: string, rows: readonly Row[]) => {
    const events: EventSource = {
      async *follow() {
        for (const [index, row] of rows.entries()) {
          const cursor = `1.1.${index}`;
          const whole = { kind: "run", id: runId, version: index, owner: null, actor: "", reason: null, data: {} };
          yield {
            type: "event",
            row: { from: null, to: null, address: null, at: new Date(), cursor, ...whole, ...row },
          } as never;
        }
      },
    };
    const query = { filter, cursor: "1.1.0" };
    const sent = await collect(watchRuns(surface.deps, events, query, new AbortController().signal));
    return sent.map(({ cursor }) => Number(cursor.slice(4)));
  };

  test("tells the event by which a run ceases to match, and no later one", async () => {
    const runId = await failed();
    const rows = [
      { type: "created", to: "PENDING" },
      { type: "transition", from: "PENDING", to: "RUNNING" },
      { type: "transition", from: "RUNNING", to: "FAILED" },
      { type: "marked_manual" },
    ];
    expect(await watch(runId, "phase=RUNNING", rows)).toEqual([1, 2]);
    expect(await watch(runId, "phase=PENDING", rows)).toEqual([0, 1]);
    expect(await watch(runId, "phase=SUCCEEDED", rows)).toEqual([]);
    expect(await watch(runId, "phase!=RUNNING", rows)).toEqual([0, 1, 2, 3]);
    expect(await watch("run-gone", "", rows)).toEqual([]);
  });

  test("admits the same runs as the list does", async () => {
    await reboot(await machine());
    await failed();
    await act("retryRun", (await failedAtTwo()).runId);
    const all = await listRuns(surface.db);
    const texts = [
      "phase=FAILED",
      "phase!=FAILED AND action=start",
      "job_state IN (pending, failed_retryable)",
      "job_state!=pending",
      'type=""',
      `plan_id=${TWO_STEPS} AND action IN (retry, rerun)`,
      `run_id=${all[0]?.id} AND job_id=${all[0]?.jobId} AND machine_id=${all[0]?.machineId} AND request_id="${all[0]?.requestId}"`,
    ];
    for (const filter of texts.map((text) => parseRunFilter(text))) {
      const listed = await listRuns(surface.db, { where: runCondition(filter) });
      const matching = all.filter((run) => matchesRun(filter, run));
      expect(matching.length).toBeGreaterThan(0);
      expect(listed.map(({ id }) => id)).toEqual(matching.map(({ id }) => id));
    }
  });

  test("tells when a job ceases to be retryable, by a mark or by the next attempt", async () => {
    const runId = await failed();
    await actions().markRunManual({ runId, comment: "fan broken" });
    expect(await watch(runId, "job_state=failed_retryable", [{ type: "marked_manual" }])).toEqual([0]);
    await act("retryRun", runId);
    expect(
      await watch(runId, "job_state=failed_manual_intervention", [
        { type: "continued", version: 3 },
        { type: "facts_changed", version: 4 },
      ]),
    ).toEqual([0]);
  });
});
