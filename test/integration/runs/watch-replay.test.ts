import { timestampDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import {
  type Run,
  Run_Phase,
  type RunEvent,
  type StepStatus,
  StepStatus_State,
} from "../../../contract/baremetal/v1/baremetal_pb.js";
import { RunActionsService } from "../../../contract/millwright/v1/run_pb.js";
import { JournalTail } from "../../../src/engine/watch.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { watchRuns } from "../../../src/services/run/watch.ts";
import type { EventSource } from "../../../src/store/lifecycle/event-source.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunBench, startRunBench } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** What WatchRuns tells of runs that are over, held against what the database was seen to hold at each of their versions. */
let bench: RunBench;
let oldest: string;
beforeAll(async () => {
  bench = await startRunBench();
  // Every version of every run, kept by the database itself and by nothing of ours.
  await bench.db.execute("create table run_versions (id text, version bigint, row jsonb, primary key (id, version))");
  await bench.db.execute(`create function keep_run_version() returns trigger language plpgsql as
    $$ begin insert into run_versions values (new.id, new.version, to_jsonb(new)); return new; end $$`);
  await bench.db.execute(
    "create trigger keep_run_version after insert or update on runs for each row execute function keep_run_version()",
  );
  const [row] = await bench.db.query<{ cursor: string }>(
    "select epoch || '.' || pg_snapshot_xmin(pg_current_snapshot())::text || '.0' as cursor from journal_epoch",
  );
  oldest = row?.cursor ?? "";
});
afterAll(() => bench.close());

const RESET = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
const actions = () => bench.client(RunActionsService);
async function machine(at: number): Promise<string> {
  const id = bench.simulated[at]?.machine_id ?? "";
  await bench.lifecycle.acceptMachine({ machineId: id });
  return id;
}

interface Kept {
  readonly version: number;
  readonly row: {
    readonly state: string;
    readonly job_state: string | null;
    readonly cancel_requested_at: string | null;
    readonly next_run_id: string | null;
    readonly manual_comment: string | null;
    readonly outcome: { readonly reason: string } | null;
    readonly facts: {
      readonly startedAt?: string | null;
      readonly finishedAt?: string | null;
      readonly error?: { readonly message: string } | null;
      readonly residue?: readonly string[];
      readonly steps?: readonly KeptStep[];
    };
  };
}
interface KeptStep {
  readonly name: string;
  readonly state: string;
  readonly retryCount: number;
  readonly message?: string;
  readonly carriedOver?: boolean;
  readonly startedAt?: string | null;
  readonly finishedAt?: string | null;
  readonly nextAttemptAt?: string | null;
}

type Moment = StepStatus["startedAt"];
const told = (at: Moment) => (at === undefined ? null : timestampDate(at).toISOString());

const shownStep = (step: StepStatus) => ({
  name: step.name,
  state: StepStatus_State[step.state],
  retryCount: step.retryCount,
  message: step.message,
  carriedOver: step.carriedOver,
  startedAt: told(step.startedAt),
  finishedAt: told(step.finishedAt),
  nextAttemptAt: told(step.nextAttemptAt),
});
const keptStep = (step: KeptStep) => ({
  name: step.name,
  state: step.state,
  retryCount: step.retryCount,
  message: step.message ?? "",
  carriedOver: step.carriedOver ?? false,
  startedAt: step.startedAt ?? null,
  finishedAt: step.finishedAt ?? null,
  nextAttemptAt: step.nextAttemptAt ?? null,
});

/** All of a run that changes. */
const shown = (run: Run) => ({
  version: Number(run.version),
  phase: Run_Phase[run.phase],
  jobState: run.jobState,
  steps: run.steps.map(shownStep),
  message: run.message,
  waitingFor: run.waitingFor,
  startedAt: told(run.startedAt),
  hasFinished: run.finishedAt !== undefined,
  error: run.error?.message ?? "",
  residue: run.residue,
  isCanceled: run.cancelRequestedAt !== undefined,
  nextRunId: run.nextRunId,
  manual: run.manual?.comment ?? "",
});
function kept({ version, row }: Kept): ReturnType<typeof shown> {
  const { facts, outcome } = row;
  return {
    version: Number(version),
    phase: row.state,
    jobState: row.job_state ?? "",
    steps: (facts.steps ?? []).map(keptStep),
    message: outcome?.reason ?? facts.error?.message ?? "",
    waitingFor: row.state === "PENDING" ? (outcome?.reason ?? "") : "",
    startedAt: facts.startedAt ?? null,
    hasFinished: !["PENDING", "RUNNING"].includes(row.state),
    error: facts.error?.message ?? "",
    residue: [...(facts.residue ?? [])],
    isCanceled: row.cancel_requested_at !== null,
    nextRunId: row.next_run_id ?? "",
    manual: row.manual_comment ?? "",
  };
}

const cursorsOf = async (runId: string) =>
  (
    await bench.db.query<{ cursor: string }>(
      "select epoch || '.' || xid::text || '.' || seq as cursor from journal where kind = 'run' and id = $1 order by epoch, xid, seq",
      [runId],
    )
  ).map(({ cursor }) => cursor);

/** What is told of one run from before it began, up to the last of its events. */
async function replay(runId: string, filter: string): Promise<RunEvent[]> {
  const last = (await cursorsOf(runId)).at(-1);
  const events: RunEvent[] = [];
  for await (const event of bench.runs.watchRuns({ filter, cursor: oldest })) {
    if (event.snapshot?.runId === runId) events.push(event);
    if (event.cursor === last) break;
  }
  return events;
}

async function expectReplayed(runId: string, filter = `run_id=${runId}`): Promise<Run[]> {
  const events = await replay(runId, filter);
  expect(events.map(({ cursor }) => cursor)).toEqual(await cursorsOf(runId));
  const snapshots = events.flatMap(({ snapshot }) => snapshot ?? []);
  const versions = await bench.db.query<Kept>("select version, row from run_versions where id = $1", [runId]);
  const byVersion = new Map(versions.map((version) => [Number(version.version), kept(version)]));
  expect(snapshots.map(shown)).toEqual(snapshots.map(({ version }) => byVersion.get(Number(version))));
  return snapshots;
}
const phases = (runs: readonly Run[]) => [...new Set(runs.map(({ phase }) => Run_Phase[phase]))];

describe("a replay tells each change with the run as it was right after it", () => {
  test("of a run of many steps, one after the other, and not as it ended", async () => {
    const { runId } = await bench.runs.startRun({ requestId: "r", machineId: await machine(0), type: "REPAVE" });
    expect((await bench.ended(runId)).phase).toBe(Run_Phase.SUCCEEDED);
    const told = await expectReplayed(runId);
    expect(phases(told)).toEqual(["PENDING", "RUNNING", "SUCCEEDED"]);
    const steps = ["set-netboot", "reboot-to-netboot", "repave-image", "join-cluster", "verify-in-cluster"];
    // A step that needs nothing but a pass is proven with the one before it, and then never the current one.
    const current = [...new Set(told.map(({ currentStep }) => currentStep))].filter((name) => name !== "");
    expect(current).toEqual(steps.filter((name) => current.includes(name)));
    expect(current).toEqual(expect.arrayContaining(["reboot-to-netboot", "repave-image", "join-cluster"]));
    expect(told[0]).toMatchObject({ steps: [], currentStep: "" });
    expect(await expectReplayed(runId, "")).toEqual(told);
  });

  test("of one that failed after a retry, was marked twice and was retried by what it had proven", async () => {
    const machineId = await machine(1);
    const kind = { case: "reboot", value: { mode: "bmc" } } as const;
    await bench.plans.createPlan({
      plan: {
        planId: "plan-checked-boot",
        steps: [
          { name: "check", kind: { case: "ssh", value: { scriptRef: "verify_network.sh" } } },
          { name: "boot", timeoutSeconds: 1, maxRetries: 1, kind },
        ],
      },
    });
    await bench.fault({ device: machineId, path: RESET, fault: { type: "lie_accept" } });
    const { runId } = await bench.runs.startRun({ requestId: "r", machineId, planId: "plan-checked-boot" });
    expect((await bench.ended(runId)).phase).toBe(Run_Phase.FAILED);
    for (const comment of ["fan broken", "fan ordered"]) await actions().markRunManual({ runId, comment });
    const { run } = await actions().retryRun({ runId, requestId: "again" });
    const retried = run?.runId ?? "";
    await bench.ended(retried);
    const told = await expectReplayed(runId);
    const boot = told.flatMap(({ steps }) => steps.find(({ name }) => name === "boot") ?? []);
    expect([...new Set(boot.map(({ retryCount }) => retryCount))]).toEqual([0, 1, 2]);
    expect(boot.some(({ nextAttemptAt }) => nextAttemptAt !== undefined)).toBe(true);
    const again = await expectReplayed(retried);
    expect(again[0]).toMatchObject({ phase: Run_Phase.PENDING, steps: [{ name: "check", carriedOver: true }] });
    await bench.control("DELETE", "/faults");
  });

  test("of one that was canceled", async () => {
    const machineId = await machine(2);
    const { runId } = await bench.runs.startRun({ requestId: "r", machineId, type: "REPAVE" });
    await eventually(async () => (await bench.truth(machineId)).media !== null, { what: "the medium is inserted" });
    await bench.runs.cancelRun({ runId });
    await bench.ended(runId);
    const told = await expectReplayed(runId);
    expect(told.map(({ jobState }) => jobState)).toEqual(expect.arrayContaining(["running", "compensating"]));
  });

  test("also to who watches only what is RUNNING: every change while it was, and that by which it ceased to be", async () => {
    const { runId } = await bench.runs.startRun({ requestId: "r", machineId: await machine(3), type: "REBOOT" });
    await bench.ended(runId);
    const all = await replay(runId, `run_id=${runId}`);
    const running = await replay(runId, `run_id=${runId} AND phase=RUNNING`);
    const from = all.findIndex(({ snapshot }) => snapshot?.phase === Run_Phase.RUNNING);
    expect(running.length).toBeGreaterThan(2);
    expect(running).toEqual(all.slice(from));
  });
});

test("a run that changes while a watch begins is not set back to before its snapshot", async () => {
  const { db, deps } = bench;
  const machineId = await machine(4);
  const stop = new AbortController();
  const tail = new JournalTail({ db, log: silentLog });
  const reading = tail.run(stop.signal);
  const during: EventSource = {
    async *follow(...rest) {
      for await (const item of tail.follow(...rest)) {
        // It is settled where "now" is; the snapshots are taken only after this.
        if (item.type === "bookmark") await bench.runs.startRun({ requestId: "r", machineId, type: "REBOOT" });
        if (item.type === "bookmark")
          await eventually(
            async () =>
              (await bench.runs.listRuns({ filter: `machine_id=${machineId} AND phase=RUNNING` })).runs.length > 0,
            { what: "the run has begun" },
          );
        yield item;
      }
    },
  };
  const versions: number[] = [];
  for await (const { run } of watchRuns(deps, during, { filter: `machine_id=${machineId}`, cursor: "" }, stop.signal)) {
    versions.push(run.version);
    if (run.phase === "SUCCEEDED") break;
  }
  stop.abort();
  await reading;
  expect(versions[0]).toBeGreaterThan(1);
  expect(versions).toEqual(versions.map((_, index) => (versions[0] ?? 0) + index));
});
