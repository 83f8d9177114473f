import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { RunService as AllRunsService, RunActionsService } from "../../../contract/millwright/v1/run_pb.js";
import { runCli } from "../../../src/cli/run-cli.ts";
import { startRun } from "../../../src/services/run/starts.ts";
import { createFakeTerminal } from "../../support/cli/fake-terminal.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunSurface, startRunSurface, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let surface: RunSurface;
beforeAll(async () => {
  surface = await startRunSurface({ controller: true, fake: { speed: "instant" } });
});
afterAll(() => surface.close());

const actions = () => surface.client(RunActionsService);
const show = async (runId: string) => {
  const { run } = await surface.client(AllRunsService).getRun({ runId });
  return run ?? expect.unreachable();
};
const ASKED = { type: "REBOOT", planId: "", params: {} };
let racks = 0;
/** Machines of a rack of their own. */
async function rack(count: number): Promise<{ readonly filter: string; readonly ids: string[] }> {
  const name = `batch-runs-${++racks}`;
  const ids = Array.from({ length: count }, (_, at) => `m-${name}-${at}`);
  for (const id of ids) {
    await surface.addMachine(id, "fake");
    await surface.changeSpec(id, { rack: name });
  }
  return { filter: `rack=${name}`, ids };
}
let count = 0;
const start = async (asked: {
  filter: string;
  maxParallel?: number;
  stopAfter?: number;
  type?: string;
  planId?: string;
}) => {
  const { run } = await actions().startRuns({ requestId: `batch-runs-${++count}`, type: "REBOOT", ...asked });
  return run?.run?.runId ?? expect.unreachable();
};
async function ended(runId: string) {
  await eventually(async () => ((await show(runId)).run?.phase ?? 0) > Run_Phase.RUNNING || undefined, {
    what: `${runId} has ended`,
    within: 30_000,
  });
  return show(runId);
}
const refusal = async (call: Promise<unknown>) => ConnectError.from(await call.catch((error: unknown) => error));

describe("runs on many machines", () => {
  test("are started on the machines that the filter admits now, some at a time, each with its machine's slot", async () => {
    const { filter, ids } = await rack(6);
    const runId = await start({ filter, maxParallel: 2 });
    await surface.addMachine("m-late", "fake");
    await surface.changeSpec("m-late", { rack: filter.slice("rack=".length) });
    const { run, target, children } = await ended(runId);
    expect(run).toMatchObject({ phase: Run_Phase.SUCCEEDED, type: "REBOOT", machineId: "" });
    expect(run?.steps.map(({ message }) => message)).toEqual(["6 of 6 succeeded"]);
    expect(target?.kind).toBe("batch");
    expect(children.map((child) => child.target?.id).sort()).toEqual(ids);
    expect(children.every(({ phase }) => phase === Run_Phase.SUCCEEDED)).toBe(true);
    // Never more than two at a time: a run begins only after the one two before it has ended.
    const times = children.map(
      ({ startedAt, finishedAt }) =>
        [
          Number(startedAt?.seconds) + (startedAt?.nanos ?? 0) / 1e9,
          Number(finishedAt?.seconds) + (finishedAt?.nanos ?? 0) / 1e9,
        ] as const,
    );
    for (const [begin] of times)
      expect(times.filter(([other, end]) => other <= begin && begin < end).length).toBeLessThanOrEqual(2);
    const { runs } = await surface.runs.listRuns({ filter: `machine_id=${ids[0]}` });
    expect(runs).toMatchObject([
      { runId: children.find((child) => child.target?.id === ids[0])?.runId, initiator: "tester" },
    ]);
  });

  test("stop after as many without success as asked for; a machine that is refused counts, and is named", async () => {
    const { filter, ids } = await rack(4);
    const [busy = ""] = ids;
    // Its run slot is taken, and nobody lets go of it.
    await surface.db.execute(
      `insert into runs (id, target_kind, target_id, machine_id, request_id, fingerprint, type, plan_id, plan, job_id, initiator, state, action)
       values ('run-in-the-way', 'machine', $1, $1, 'x', 'x', '', 'p', '{"planId": "p", "displayName": "", "steps": []}', 'job-x', 'x', 'PENDING', 'start')`,
      [busy],
    );
    const { run, children, stepDetails } = await ended(await start({ filter, maxParallel: 1, stopAfter: 1 }));
    expect(run?.phase).toBe(Run_Phase.FAILED);
    expect(children).toEqual([]);
    expect(run?.message).toContain(`refused: ${busy} (machine ${busy} has an active run, run-in-the-way`);
    expect(run?.message).toContain("3 not started");
    expect(run?.message).toContain("stopped after 1 without success");
    expect(stepDetails[0]?.receipt).toMatchObject({ refused: { [busy]: expect.stringContaining("active run") } });

    const all = await ended(await start({ filter, maxParallel: 1 }));
    expect(all.run?.phase).toBe(Run_Phase.FAILED);
    expect(all.children.map(({ phase }) => phase)).toEqual(Array(3).fill(Run_Phase.SUCCEEDED));
    expect(all.run?.message).toMatch(/^runs: 3 of 3 succeeded; refused: /);
    await surface.db.execute("delete from runs where id = 'run-in-the-way'");
  });

  test("end with the run that started them: a cancel reaches each of them, and starts no other", async () => {
    const slow = await startRunSurface({ controller: true, fake: { speed: "slow" } });
    try {
      for (const at of [0, 1, 2]) await slow.addMachine(`m-slow-${at}`, "fake");
      const asked = { requestId: "slow", filter: "machine_id^=m-slow", type: "REBOOT", maxParallel: 2 };
      const { run } = await slow.client(RunActionsService).startRuns(asked);
      const runId = run?.run?.runId ?? "";
      const all = slow.client(AllRunsService);
      const tree = async () => (await all.getRun({ runId })).run ?? expect.unreachable();
      const isUnderWay = async () =>
        (await tree()).children.filter(({ phase }) => phase === Run_Phase.RUNNING).length === 2;
      await eventually(async () => (await isUnderWay()) || undefined, { what: "two runs", within: 20_000 });
      await all.cancelRun({ runId });
      await eventually(async () => (await tree()).run?.phase === Run_Phase.CANCELED || undefined, {
        what: "it is canceled",
        within: 60_000,
      });
      expect((await tree()).children.map(({ phase }) => phase)).toEqual([Run_Phase.CANCELED, Run_Phase.CANCELED]);
    } finally {
      await slow.close();
    }
  });

  test("are not started any more once a cancel is asked for in the midst of starting them", async () => {
    const { filter } = await rack(8);
    await surface.db.execute(
      `create function cancel_after_three() returns trigger language plpgsql as $$ begin
         if (select count(*) from runs where parent_run_id = new.parent_run_id) = 3 then
           update runs set cancel_requested_at = now(), basis = basis + 1 where id = new.parent_run_id;
         end if;
         return null;
       end $$`,
    );
    await surface.db.execute(
      `create trigger cancel_after_three after insert on runs for each row
         when (new.parent_run_id is not null) execute function cancel_after_three()`,
    );
    try {
      const { run, children, stepDetails } = await ended(await start({ filter, maxParallel: 1_000 }));
      expect(run?.phase).toBe(Run_Phase.CANCELED);
      expect(children).toHaveLength(3);
      expect(stepDetails[0]?.receipt?.refused ?? {}).toEqual({});
    } finally {
      await surface.db.execute("drop function cancel_after_three cascade");
    }
  });

  test("are started a few in a pass, and all of them in the end", async () => {
    const { filter } = await rack(25);
    const { run, children } = await ended(await start({ filter, maxParallel: 1_000 }));
    expect(run?.message || run?.phase).toBe(Run_Phase.SUCCEEDED);
    expect(children).toHaveLength(25);
  });

  test("are started for a run that goes on alone, and never taken from somebody who has guessed its request", async () => {
    const idle = await startRunSurface({ fake: { speed: "instant" } });
    try {
      const [one, two] = [await idle.addMachine("m-idle-1", "fake"), await idle.addMachine("m-idle-2", "fake")];
      const many = { requestId: "idle", filter: "machine_id^=m-idle", type: "REBOOT" };
      const { run } = await idle.client(RunActionsService).startRuns(many);
      const runId = run?.run?.runId ?? "";
      const part = { runId, step: "runs", round: 1 };
      const begin = (machineId: string, parent?: typeof part) =>
        startRun(idle.runDeps, tester, { ...ASKED, machineId, requestId: `of ${runId}` }, parent);
      await expect(begin(one, part)).rejects.toThrow(`run ${runId} is PENDING`);
      await idle.db.execute("update runs set state = 'RUNNING' where id = $1", [runId]);
      const child = await begin(one, part);
      expect((await begin(one, part)).id).toBe(child.id);
      const guessed = await begin(two);
      await expect(begin(two, part)).rejects.toThrow(`run ${guessed.id}, which is no part of run ${runId}`);
      await idle.db.execute("update runs set state = 'SUCCEEDED'  where id = $1", [guessed.id]);
      await idle.client(AllRunsService).cancelRun({ runId });
      await expect(
        startRun(idle.runDeps, tester, { ...ASKED, machineId: two, requestId: "late" }, part),
      ).rejects.toThrow(`run ${runId} is being canceled`);
    } finally {
      await idle.close();
    }
  });

  test("are the same for the same request, and refused for another under its id, or where nothing makes sense", async () => {
    const { filter } = await rack(1);
    const asked = { requestId: "once", filter, type: "REBOOT" };
    const [one, two] = await Promise.all([actions().startRuns(asked), actions().startRuns(asked)]);
    expect(two.run?.run?.runId).toBe(one.run?.run?.runId);
    await ended(one.run?.run?.runId ?? "");
    expect((await refusal(actions().startRuns({ ...asked, type: "REPAVE" }))).code).toBe(Code.AlreadyExists);
    for (const [wrong, code] of [
      [{ filter: "" }, Code.InvalidArgument],
      [{ filter: "rack=" }, Code.InvalidArgument],
      [{ filter: "rack=rack-1) OR (rack=rack-2" }, Code.InvalidArgument],
      [{ filter: "rack=nowhere" }, Code.FailedPrecondition],
      [{ type: "DANCE" }, Code.InvalidArgument],
      [{ type: "", planId: "no-such-plan" }, Code.NotFound],
      [{ maxParallel: -1 }, Code.InvalidArgument],
      [{ stopAfter: 100_000 }, Code.InvalidArgument],
      [{ requestId: "" }, Code.InvalidArgument],
    ] as const) {
      const before = await surface.db.query("select count(*) from batches");
      const error = await refusal(actions().startRuns({ ...asked, requestId: `wrong-${++count}`, ...wrong }));
      expect(error.code, JSON.stringify(wrong)).toBe(code);
      expect(await surface.db.query("select count(*) from batches")).toEqual(before);
    }
  });
});

test("run start --filter asks, starts them at the server, follows the whole, and shows the tree", async () => {
  const { filter, ids } = await rack(2);
  const line = ["run", "start", "--filter", filter, "--type", "REBOOT", "--wait"];
  const cli = async (args: readonly string[], answer?: string) => {
    const terminal = createFakeTerminal(answer === undefined ? {} : { isTTY: true, answer });
    const code = await runCli(args, { version: "1", terminal, transport: surface.transport });
    return { code, out: terminal.out(), err: terminal.err() };
  };
  expect(await cli(line)).toMatchObject({ code: 2, err: expect.stringContaining("Start REBOOT on 2 machines") });
  const { code, out } = await cli([...line, "--yes"]);
  expect(code).toBe(0);
  for (const id of ids) expect(out).toContain(`machine/${id}`);
  expect(out).toContain("Runs of step runs: 2 SUCCEEDED");
  expect((await cli(["run", "start", "--type", "REBOOT"])).code).toBe(2);
  expect((await cli([...line, "--machine", "m-1", "--yes"])).code).toBe(2);
});
