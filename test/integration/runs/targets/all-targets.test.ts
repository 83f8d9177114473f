import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Run_Phase } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { RunActionsService, RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { collect, type RunSurface, startRunSurface } from "../../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../../support/second-try.ts";
import { refusal } from "../../api/forge-under-test.ts";

/** A run on a rack with two children, beside one on a machine: who knows which. Nobody carries them out. */
let surface: RunSurface;
let onMachine: string;
beforeAll(async () => {
  surface = await startRunSurface({ fake: { speed: "instant" } });
  await surface.addMachine("m-1", "fake");
  ({ runId: onMachine } = await surface.runs.startRun({ requestId: "r", machineId: "m-1", type: "REBOOT" }));
  await insert({ id: "run-rack", target_kind: "rack", target_id: "rack-1" });
  await insert({ id: "run-child-1", ...child, target_id: "sw-1" });
  await insert({ id: "run-child-2", ...child, target_id: "sw-2" });
});
afterAll(() => surface.close());

const child = { target_kind: "switch", parent_run_id: "run-rack", parent_step: "flash", parent_round: 1 };
const PLAN = {
  planId: "rack-work",
  displayName: "",
  steps: [{ name: "flash", kind: "flash", timeoutSeconds: 60, maxRetries: 0, payload: { firmware: "1.2" } }],
};
const insert = (run: Readonly<Record<string, string | number>>) => {
  const row = {
    request_id: String(run.id),
    fingerprint: "",
    type: "",
    plan_id: "rack-work",
    plan: JSON.stringify(PLAN),
    job_id: `job-of-${run.id}`,
    initiator: "tester",
    state: "PENDING",
    ...run,
  };
  const columns = Object.keys(row);
  const places = columns.map((_, at) => `$${at + 1}`);
  return surface.db.execute(
    `insert into runs (${columns.join(", ")}) values (${places.join(", ")})`,
    Object.values(row),
  );
};
const all = () => surface.client(RunService);
const idsOf = (runs: readonly { readonly run?: { readonly runId: string } | undefined }[]) =>
  runs.map(({ run }) => run?.runId);

describe("baremetal.v1", () => {
  test("knows runs that take a machine's slot, and no others", async () => {
    const { runs } = surface;
    expect((await runs.listRuns({})).runs.map(({ runId }) => runId)).toEqual([onMachine]);
    expect((await runs.listRuns({ filter: "target_kind=rack" })).runs).toEqual([]);
    for (const runId of ["run-rack", "run-child-1"]) {
      expect(await refusal(runs.getRun({ runId }))).toMatchObject({ code: Code.NotFound });
      expect(await refusal(runs.cancelRun({ runId }))).toMatchObject({ code: Code.NotFound });
      expect(await refusal(collect(runs.streamRunLogs({ runId, noFollow: true })))).toMatchObject({
        code: Code.NotFound,
      });
    }
    expect((await runs.getRun({ runId: onMachine })).machineId).toBe("m-1");
  });
});

describe("millwright.v1", () => {
  test("lists runs on all targets, and with children those that runs have started", async () => {
    expect(idsOf((await all().listRuns({})).runs).sort()).toEqual([onMachine, "run-rack"].sort());
    const { runs, totalSize } = await all().listRuns({ children: true, withTotal: true, orderBy: "run_id" });
    expect(totalSize).toBe(4);
    expect(idsOf(runs)).toEqual([onMachine, "run-child-1", "run-child-2", "run-rack"].sort());
    const ofRack = await all().listRuns({ filter: "target_kind=rack AND target_id=rack-1" });
    expect(ofRack.runs).toMatchObject([{ target: { kind: "rack", id: "rack-1" }, run: { machineId: "" } }]);
    const started = await all().listRuns({ filter: "parent_run_id=run-rack", children: true });
    expect(started.runs).toHaveLength(2);
  });

  test("pages through one list, and refuses the token of another", async () => {
    const first = await all().listRuns({ children: true, pageSize: 3 });
    expect(first.runs).toHaveLength(3);
    const pageToken = first.nextPageToken;
    expect((await all().listRuns({ children: true, pageSize: 3, pageToken })).runs).toHaveLength(1);
    expect(await refusal(all().listRuns({ pageSize: 3, pageToken }))).toMatchObject({ code: Code.InvalidArgument });
  });

  test("shows a run with those that it has started, and each of them with its parent", async () => {
    const { run } = await all().getRun({ runId: "run-rack" });
    expect(run?.children).toMatchObject([
      {
        runId: "run-child-1",
        target: { kind: "switch", id: "sw-1" },
        step: "flash",
        round: 1,
        phase: Run_Phase.PENDING,
      },
      { runId: "run-child-2", target: { kind: "switch", id: "sw-2" } },
    ]);
    expect(run?.run?.plan?.steps).toMatchObject([{ name: "flash", timeoutSeconds: 60, kind: { case: undefined } }]);
    const { run: first } = await all().getRun({ runId: "run-child-1" });
    expect(first).toMatchObject({ parent: { runId: "run-rack", step: "flash", round: 1 }, children: [] });
    expect((await all().getRun({ runId: onMachine })).run).toMatchObject({
      target: { kind: "machine", id: "m-1" },
      run: { machineId: "m-1" },
    });
  });

  test("cancels any of them; all else that people do is refused", async () => {
    const actions = surface.client(RunActionsService);
    for (const runId of ["run-rack", "run-child-2"]) {
      const answer = await refusal(actions.rerunRun({ runId, requestId: "again" }));
      expect(answer).toMatchObject({ code: Code.FailedPrecondition });
      expect(answer.message).toContain("can only be canceled");
      expect(await refusal(actions.markRunManual({ runId, comment: "mine" }))).toMatchObject({
        code: Code.FailedPrecondition,
      });
    }
    const { run } = await all().cancelRun({ runId: "run-child-2" });
    expect(run?.run?.cancelRequestedAt).toBeDefined();
  });
});
