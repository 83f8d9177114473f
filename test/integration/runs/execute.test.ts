import { fromJson } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type LogChunk,
  type Machine,
  MachineStatus_Phase,
  PlanSchema,
  type Run,
  Run_Phase,
  type RunEvent,
  StepStatus_State,
} from "../../../contract/baremetal/v1/baremetal_pb.js";
import { HistoryService } from "../../../contract/millwright/v1/history_pb.js";
import { seconds } from "../../../src/kernel/time/duration.ts";
import * as claims from "../../../src/store/lifecycle/claims/claims.ts";
import { compareCursors } from "../../../src/store/lifecycle/journal.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import * as work from "../../../src/store/lifecycle/work.ts";
import { wishFor } from "../../support/claims.ts";
import { openConditionBench } from "../../support/condition-bench.ts";
import { eventually } from "../../support/eventually.ts";
import { collect, type RunBench, startRunBench } from "../../support/run-bench.ts";

/** Runs on simulated machines over Redfish, SSH and the Kubernetes API, as in production. */
let bench: RunBench;
let unused: string[];
beforeAll(async () => {
  bench = await startRunBench({ site: "racks=2" });
  unused = bench.simulated.map(({ machine_id }) => machine_id);
  // All of them at once: where a test has machines looked at, those of the others are inspected as well.
  await Promise.all(unused.map((machineId) => bench.lifecycle.acceptMachine({ machineId })));
});
afterAll(() => bench.close());

/** A machine that no other test has touched, nor the first try of the same one; READY. */
async function machine(): Promise<string> {
  const id = unused.shift();
  if (id === undefined) throw new Error("there is no machine left");
  return id;
}

const RESET = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
const start = (machineId: string, type: string, requestId = "r") => bench.runs.startRun({ requestId, machineId, type });
const show = (machineId: string) => bench.machines.getMachine({ machineId });
const condition = (shown: Machine, type: string) => shown.status?.conditions.find((one) => one.type === type);
const textOf = (chunks: readonly LogChunk[]) => chunks.map(({ data }) => Buffer.from(data).toString()).join("");
const seqs = (chunks: readonly LogChunk[]) => chunks.map(({ seq }) => Number(seq));
const counting = (length: number) => Array.from({ length }, (_, index) => index + 1);

/** Every step in order and proven, the log complete and in order. */
async function expectProven(run: Run, steps: readonly string[]): Promise<void> {
  const chunks = await bench.logs(run.runId);
  expect(run.phase, `${run.error?.message}\n${textOf(chunks)}`).toBe(Run_Phase.SUCCEEDED);
  expect(run.steps.map(({ name }) => name)).toEqual(steps);
  for (const step of run.steps) {
    expect(step).toMatchObject({ state: StepStatus_State.SUCCEEDED, retryCount: 0 });
    expect(step.startedAt).toBeDefined();
    expect(step.finishedAt).toBeDefined();
  }
  expect(run).toMatchObject({ currentStep: "", waitingFor: "", residue: [] });
  // From the moment it has ended nobody looks at it any more, and nothing is kept for those who would.
  expect(await work.findWork(bench.db, [{ kind: "run", id: run.runId }])).toEqual([]);
  expect(run.startedAt).toBeDefined();
  expect(run.finishedAt).toBeDefined();
  expect(seqs(chunks)).toEqual(counting(chunks.length));
  const said = textOf(chunks);
  let from = 0;
  for (const name of steps) {
    for (const line of [`step ${name} begins`, `step ${name} is done`]) {
      expect(said.split(line), `${line} once in\n${said}`).toHaveLength(2);
      expect(said.indexOf(line)).toBeGreaterThanOrEqual(from);
      from = said.indexOf(line);
    }
  }
}

/** Alone, and first: all machines are looked at meanwhile, and those of the others would show what is done to them. */
describe("a REPAVE", () => {
  test("by the specification's sample plan, as printed, SUCCEEDS, and the machine stays in the cluster that it names", async () => {
    const id = await machine();
    const plan = fromJson(PlanSchema, {
      plan_id: "plan-repave-ubuntu-2204-v1",
      display_name: "Repave Ubuntu 22.04 + Join Cluster",
      steps: [
        { name: "set-netboot", timeout_seconds: 60, max_retries: 2, netboot: { mode: "PXE" } },
        { name: "repave-os", timeout_seconds: 1800, max_retries: 1, repave: { image: "ubuntu-22.04" } },
        { name: "reboot", timeout_seconds: 300, max_retries: 2, reboot: { mode: "bmc" } },
        { name: "join-cluster", timeout_seconds: 600, max_retries: 1, join: { cluster_ref: "cluster-a" } },
        { name: "verify", timeout_seconds: 300, max_retries: 0, verify: { cluster_ref: "cluster-a" } },
      ],
    });
    await bench.plans.createPlan({ plan }).catch(unlessFromFirstTry);
    const { runId } = await bench.runs.startRun({ requestId: "req-456", machineId: id, planId: plan.planId });
    await expectProven(await bench.ended(runId), ["set-netboot", "repave-os", "reboot", "join-cluster", "verify"]);
    expect((await bench.truth(id)).effects).toMatchObject({ installs_started: 1, installs: 1, joins: 1 });
    expect((await show(id)).status?.phase).toBe(MachineStatus_Phase.IN_SERVICE);
    await staysInItsCluster(id, "cluster-a");
  }, 180_000);

  const unlessFromFirstTry = (error: unknown) => {
    if (ConnectError.from(error).code !== Code.AlreadyExists) throw error;
  };

  /** The owner names no cluster, or another one: whoever looks at the machine, or drains it, goes where the plan has joined it. */
  async function staysInItsCluster(id: string, cluster: string): Promise<void> {
    const looks = openConditionBench(bench);
    try {
      looks.start({ interval: seconds(3) });
      await looks.becomes(id, "InCustomerCluster", true, "NodeReady");
      await looks.looked(id, 2);
      const seen = await show(id);
      expect(seen.status?.effectiveState).toBe(MachineStatus_Phase.IN_SERVICE);
      expect(condition(seen, "InCustomerCluster")?.message).toBe(`node ${id} of ${cluster}`);
      await bench.lifecycle.enterMaintenance({ machineId: id });
      expect((await looks.becomes(id, "Drained", true)).message).toBe(`node ${id} of ${cluster}`);
    } finally {
      await looks.close();
    }
  }
});

describe.concurrent("a REBOOT", () => {
  test("reboots the machine once, proves it by its boot id, and leaves it in the phase of before", async () => {
    const id = await machine();
    const before = await bench.truth(id);
    const { runId } = await start(id, "REBOOT");
    const run = await bench.ended(runId);
    await expectProven(run, ["reboot"]);
    const after = await bench.truth(id);
    expect(after.os.boot_id).not.toBe(before.os.boot_id);
    expect(after.effects).toMatchObject({ resets: (before.effects.resets ?? 0) + 1 });
    const shown = await show(id);
    expect(shown.status).toMatchObject({
      phase: MachineStatus_Phase.READY,
      effectiveState: MachineStatus_Phase.READY,
      activeRunId: "",
      lastRunId: runId,
    });
    expect(await claims.list(bench.db, [{ kind: "machine", id }])).toEqual([]);
  });

  test("that has ended and is woken once more gets a pass without effect, and leaves nothing behind", async () => {
    const { runId } = await start(await machine(), "REBOOT");
    await bench.ended(runId);
    const key = { kind: "run", id: runId };
    await work.wake(bench.db, [key]);
    await eventually(async () => (await work.findWork(bench.db, [key])).length === 0, { what: "it is forgotten" });
  });

  test("leaves every transition in the run's history, in order and with who made it", async () => {
    const { runId } = await start(await machine(), "REBOOT");
    await bench.ended(runId);
    const { events } = await bench.client(HistoryService).listHistory({ kind: "run", id: runId });
    const moves = events.filter(({ fromState, toState }) => toState !== fromState && toState !== "");
    expect(moves.map(({ fromState, toState }) => `${fromState}>${toState}`)).toEqual([
      ">PENDING",
      "PENDING>RUNNING",
      "RUNNING>SUCCEEDED",
    ]);
    expect(events.every(({ actor, at }) => actor !== "" && at !== undefined)).toBe(true);
    expect(events.map(({ version }) => version)).toEqual(events.map((_, index) => BigInt(index + 1)));
  });

  test("does not lift maintenance", async () => {
    const id = await machine();
    await bench.lifecycle.enterMaintenance({ machineId: id });
    await eventually(async () => (await show(id)).status?.phase === MachineStatus_Phase.MAINTENANCE, {
      what: "it is in maintenance",
    });
    const { runId } = await start(id, "REBOOT");
    await expectProven(await bench.ended(runId), ["reboot"]);
    expect((await show(id)).status?.phase).toBe(MachineStatus_Phase.MAINTENANCE);
  });

  test("shows the machine PROVISIONING while it runs, and holds its claim", async () => {
    const id = await machine();
    await bench.fault({ device: id, path: "/redfish/v1/Systems", fault: { type: "latency", ms: 300 } });
    const { runId } = await start(id, "REBOOT");
    const shown = await eventually(
      async () => {
        const now = await show(id);
        return now.status?.phase === MachineStatus_Phase.PROVISIONING && now;
      },
      { what: "the machine is PROVISIONING" },
    );
    expect(shown.status).toMatchObject({ activeRunId: runId, effectiveState: MachineStatus_Phase.PROVISIONING });
    expect(shown.status?.claim).toMatchObject({ kind: "run", id: runId });
    await expectProven(await bench.ended(runId), ["reboot"]);
  });
});

describe.concurrent("a REPAVE", () => {
  test("installs once, joins once, and puts the machine into service", async () => {
    const id = await machine();
    const { runId } = await start(id, "REPAVE");
    const run = await bench.ended(runId);
    await expectProven(run, ["set-netboot", "reboot-to-netboot", "repave-image", "join-cluster", "verify-in-cluster"]);
    const truth = await bench.truth(id);
    expect(truth.effects).toMatchObject({ joins_started: 1, joins: 1 });
    expect(truth.media).toBeNull();
    expect(truth.kubernetes.cluster).toBe("default-cluster");
    const shown = await show(id);
    expect(shown.status).toMatchObject({
      phase: MachineStatus_Phase.IN_SERVICE,
      effectiveState: MachineStatus_Phase.IN_SERVICE,
      lastRunId: runId,
    });
    expect(condition(shown, "Provisioned")).toMatchObject({ status: true });
    expect(condition(shown, "InCustomerCluster")).toMatchObject({ status: true });
    expect(condition(shown, "NeedsIntervention")?.status ?? false).toBe(false);
  });
});

describe.concurrent("a step that fails after its retries", () => {
  test("fails the run, puts the machine into MAINTENANCE and calls for somebody; a success clears it", async () => {
    const id = await machine();
    const refusal = { device: id, method: "POST", path: RESET, fault: { type: "status", status: 400 } };
    const { id: fault } = await bench.control<{ id: string }>("POST", "/faults", refusal);
    const { runId } = await start(id, "REBOOT");
    const run = await bench.ended(runId);
    expect(run.phase).toBe(Run_Phase.FAILED);
    expect(run.steps).toMatchObject([{ name: "reboot", state: StepStatus_State.FAILED }]);
    expect(run.error).toMatchObject({ code: "EXECUTION_FAILED", retryable: true });
    expect(run.error?.message).toMatch(/^reboot: /);
    const failed = await show(id);
    expect(failed.status).toMatchObject({ phase: MachineStatus_Phase.MAINTENANCE, lastRunId: runId, activeRunId: "" });
    expect(condition(failed, "NeedsIntervention")).toMatchObject({ status: true, reason: "RunFailed" });
    expect(failed.status?.banners).toContain("NeedsIntervention");
    expect(textOf(await bench.logs(runId))).toContain("step reboot failed: ");

    await bench.control("DELETE", `/faults/${fault}`);
    const again = await start(id, "REBOOT", "again");
    await expectProven(await bench.ended(again.runId), ["reboot"]);
    expect(condition(await show(id), "NeedsIntervention")).toMatchObject({ status: false });
  });

  const atLeast = (least: number) => expect.toSatisfy((pause: number) => pause >= least, `at least ${least} ms`);
  const hasty = async (machineId: string, maxRetries: number, timeoutSeconds: number): Promise<string> => {
    const planId = `plan-hasty-${machineId}`;
    const kind = { case: "reboot", value: { mode: "bmc" } } as const;
    await bench.plans.createPlan({ plan: { planId, steps: [{ name: "boot", timeoutSeconds, maxRetries, kind }] } });
    return planId;
  };

  test("was tried as often as the plan says, each time with a longer pause before", async () => {
    const id = await machine();
    const planId = await hasty(id, 2, 2);
    await bench.fault({ device: id, path: RESET, fault: { type: "lie_accept" } });
    const { runId } = await bench.runs.startRun({ requestId: "r", machineId: id, planId });
    const run = await bench.ended(runId);
    expect(run).toMatchObject({
      phase: Run_Phase.FAILED,
      steps: [{ name: "boot", state: StepStatus_State.FAILED, retryCount: 3 }],
    });
    expect(run.error?.message).toMatch(/^boot: not done within 2/);
    const chunks = await bench.logs(runId);
    expect(textOf(chunks).match(/step boot begins.*/g), textOf(chunks)).toEqual([
      "step boot begins",
      "step boot begins, attempt 2",
      "step boot begins, attempt 3",
    ]);
    const times = (line: string) =>
      chunks.flatMap(({ data, ts }) => (ts && Buffer.from(data).includes(line) ? timestampMs(ts) : []));
    const [failed, began] = [times("step boot failed"), times("step boot begins")];
    const pauses = began.slice(1).map((at, index) => at - (failed[index] ?? at));
    // 1 s and 2 s, a fifth less at the least; how much longer it takes is the machine's affair.
    expect(pauses).toEqual([atLeast(800), atLeast(1_600)]);
  });

  test("but then succeeds shows how often it failed", async () => {
    const id = await machine();
    const planId = await hasty(id, 1, 4);
    await bench.fault({ device: id, path: RESET, times: 1, fault: { type: "lie_accept" } });
    const { runId } = await bench.runs.startRun({ requestId: "r", machineId: id, planId });
    const run = await bench.ended(runId);
    expect(run).toMatchObject({
      phase: Run_Phase.SUCCEEDED,
      steps: [{ name: "boot", state: StepStatus_State.SUCCEEDED, retryCount: 1 }],
    });
  });
});

describe.concurrent("a lost answer", () => {
  test("to the reset does not reset the machine twice", async () => {
    const id = await machine();
    await bench.fault({ device: id, method: "POST", path: RESET, times: 1, fault: { type: "drop", when: "after" } });
    const { runId } = await start(id, "REBOOT");
    const run = await bench.ended(runId);
    expect(run.phase, `${run.error?.message}`).toBe(Run_Phase.SUCCEEDED);
    expect((await bench.truth(id)).effects).toMatchObject({ resets: 1 });
  });
});

describe.concurrent("a cancel", () => {
  test("with devices that answer ends within 10 s, undoes what it can, and leaves the machine in MAINTENANCE", async () => {
    const id = await machine();
    const { runId } = await start(id, "REPAVE");
    await eventually(async () => (await bench.truth(id)).media !== null, { what: "the medium is inserted" });
    const asked = Date.now();
    await bench.runs.cancelRun({ runId });
    const run = await bench.ended(runId, 10_000);
    expect(Date.now() - asked).toBeLessThan(10_000);
    expect(run.phase).toBe(Run_Phase.CANCELED);
    expect(run.finishedAt).toBeDefined();
    const shown = await show(id);
    expect(shown.status).toMatchObject({ phase: MachineStatus_Phase.MAINTENANCE, activeRunId: "", lastRunId: runId });
    expect(condition(shown, "NeedsIntervention")?.status ?? false).toBe(false);
    expect((await bench.truth(id)).media).toBeNull();
    expect(await bench.runs.cancelRun({ runId })).toMatchObject({ phase: Run_Phase.CANCELED });
  });

  test("with a dead BMC ends within 60 s and lists what may be left behind", async () => {
    const id = await machine();
    const { runId } = await start(id, "REPAVE");
    await eventually(async () => (await bench.truth(id)).media !== null, { what: "the medium is inserted" });
    await bench.fault({ device: id, fault: { type: "hang" } });
    await bench.fault({ device: id, fault: { type: "ssh_hang" } });
    const asked = Date.now();
    await bench.runs.cancelRun({ runId });
    const run = await bench.ended(runId, 60_000);
    expect(Date.now() - asked).toBeLessThan(60_000);
    expect(run.phase).toBe(Run_Phase.CANCELED);
    expect(run.residue).toEqual([expect.stringMatching(/^repave-image: /)]);
    const shown = await show(id);
    expect(shown.status?.phase).toBe(MachineStatus_Phase.MAINTENANCE);
    expect(condition(shown, "Provisioned")).toMatchObject({
      status: false,
      reason: "InstallationNotProven",
      message: run.residue.join("; "),
    });
  }, 90_000);

  test("of a run that waits for its machine ends it at once, and the machine stays as it was", async () => {
    const id = await machine();
    const release = await claimedBySomebody(id);
    const { runId } = await start(id, "REBOOT");
    await bench.runs.cancelRun({ runId });
    const run = await bench.ended(runId, 5_000);
    expect(run).toMatchObject({ phase: Run_Phase.CANCELED, steps: [] });
    expect(run.finishedAt).toBeDefined();
    expect((await show(id)).status).toMatchObject({ phase: MachineStatus_Phase.READY, activeRunId: "" });
    await release();
    expect(await claims.list(bench.db, [{ kind: "machine", id }])).toEqual([]);
  });
});

describe.concurrent("a machine that another holds", () => {
  test("leaves the run PENDING, says for whom it waits, and is worked on once it is free", async () => {
    const id = await machine();
    const release = await claimedBySomebody(id);
    const { runId } = await start(id, "REBOOT");
    const waiting = await eventually(
      async () => {
        const run = await bench.runs.getRun({ runId });
        return run.waitingFor !== "" && run;
      },
      { what: "the run says what it waits for" },
    );
    expect(waiting.phase).toBe(Run_Phase.PENDING);
    expect(waiting.waitingFor).toContain(`workflow wf-${id}`);
    const shown = await show(id);
    expect(shown.status).toMatchObject({ activeRunId: runId, effectiveState: MachineStatus_Phase.PROVISIONING });
    expect(shown.status?.phase).toBe(MachineStatus_Phase.READY);
    expect(shown.status?.waitingFor).toContain(`workflow wf-${id}`);
    await release();
    await expectProven(await bench.ended(runId), ["reboot"]);
  });
});

async function claimedBySomebody(id: string): Promise<() => Promise<void>> {
  const [thing, holder] = [
    { kind: "machine", id },
    { kind: "workflow", id: `wf-${id}` },
  ];
  await bench.db.transaction(async (tx) => {
    await lockThings(tx, [thing]);
    await claims.acquire(tx, [wishFor(thing, holder, "rolling update")]);
  });
  return () =>
    bench.db.transaction(async (tx) => {
      await lockThings(tx, [thing]);
      await work.wake(tx, await claims.releaseAll(tx, [holder]));
      await tx.query("select pg_notify('millwright', '')");
    });
}

/** Of all that the journal has of the run, in its order. */
const cursorsOf = async (runId: string) =>
  (
    await bench.db.query<{ cursor: string }>(
      "select epoch || '.' || xid::text || '.' || seq as cursor from journal where kind = 'run' and id = $1 order by epoch, xid, seq",
      [runId],
    )
  ).map(({ cursor }) => cursor);

describe.concurrent("WatchRuns", () => {
  test("sends what is active first, then every change; a cursor continues without gap or repeat", async () => {
    const id = await machine();
    const release = await claimedBySomebody(id);
    const { runId } = await start(id, "REBOOT");
    const stop = new AbortController();
    const events: RunEvent[] = [];
    let beforeRelease: string[] = [];
    for await (const event of bench.runs.watchRuns({ filter: `machine_id=${id}` }, { signal: stop.signal })) {
      events.push(event);
      if (events.length === 1) {
        beforeRelease = await cursorsOf(runId);
        await release();
      }
      if (event.snapshot?.phase === Run_Phase.SUCCEEDED) break;
    }
    stop.abort();
    expect(events[0]).toMatchObject({ message: "snapshot", snapshot: { runId, phase: Run_Phase.PENDING } });
    const phases = events.map(({ snapshot }) => snapshot?.phase ?? 0);
    expect(phases).toEqual([...phases].sort());
    expect(events.some(({ snapshot }) => snapshot?.currentStep === "reboot")).toBe(true);

    const cursors = events.slice(1).map(({ cursor }) => cursor);
    const since = events[0]?.cursor ?? "";
    const happened = (await cursorsOf(runId)).filter((cursor) => compareCursors(cursor, since) > 0);
    // What led up to the snapshot is in it, and is not told again.
    const inSnapshot = happened.slice(0, -cursors.length);
    expect(cursors).toEqual(happened.slice(inSnapshot.length));
    expect(beforeRelease).toEqual(expect.arrayContaining(inSnapshot));
    expect(cursors.length).toBeGreaterThan(2);
    const resumed: string[] = [];
    const request = { filter: `machine_id=${id}`, cursor: cursors[1] ?? "" };
    for await (const { cursor } of bench.runs.watchRuns(request)) {
      resumed.push(cursor);
      if (resumed.length === cursors.length - 2) break;
    }
    expect(resumed).toEqual(cursors.slice(2));
  });
});

describe.concurrent("StreamRunLogs", () => {
  test("follows from the first chunk to the end of the run, also after a given one", async () => {
    const id = await machine();
    const { runId } = await start(id, "REPAVE");
    const [live, later] = await Promise.all([
      collect(bench.runs.streamRunLogs({ runId })),
      collect(bench.runs.streamRunLogs({ runId, after: 3n })),
    ]);
    expect((await bench.runs.getRun({ runId })).phase).toBe(Run_Phase.SUCCEEDED);
    expect(seqs(live)).toEqual(counting(live.length));
    expect(seqs(later)).toEqual(counting(live.length).slice(3));
    expect(textOf(await collect(bench.runs.streamRunLogs({ runId })))).toBe(textOf(live));
    expect(new Set(live.map(({ runId: of }) => of))).toEqual(new Set([runId]));
    expect(textOf(live)).toContain("step verify-in-cluster is done");
  });

  test("loses nothing for a reader that is slow", async () => {
    const id = await machine();
    const { runId } = await start(id, "REBOOT");
    await bench.ended(runId);
    const own = (await bench.logs(runId)).length;
    const line = "x".repeat(2_000);
    await bench.db.execute(
      `insert into run_logs (run_id, seq, at, step, stream, data, bytes_so_far)
       select $1, $2 + n, now(), 'reboot', 'stdout', convert_to(n || $3, 'UTF8'), 2000 * n from generate_series(1, 1800) n`,
      [runId, own, line],
    );
    let expected = 0;
    for await (const chunk of bench.runs.streamRunLogs({ runId })) {
      expected += 1;
      expect(Number(chunk.seq)).toBe(expected);
      if (expected % 100 === 0) await new Promise(setImmediate);
    }
    expect(expected).toBe(own + 1_800);
  });
});
