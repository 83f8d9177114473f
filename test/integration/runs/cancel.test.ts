import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MachineStatus_Phase, Run_Phase, StepStatus_State } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { RunActionsService } from "../../../contract/millwright/v1/run_pb.js";
import { allSteps } from "../../../src/runs/steps/index.ts";
import { Runbooks } from "../../../src/runs/steps/scripts/runbooks.ts";
import { createPlan, type StepInput } from "../../../src/services/run/plans.ts";
import * as claims from "../../../src/store/lifecycle/claims/claims.ts";
import { eventually } from "../../support/eventually.ts";
import type { MachineTruth } from "../../support/machine-site.ts";
import { type RunBench, startRunBench, tester } from "../../support/run-bench.ts";

/** Cancel in the middle of every kind of step, on machines slow enough to be caught in the middle. */
const WITHIN = { answering: 10_000, dead: 60_000 } as const;

/** Where it may go either way, it is what fits how the machine itself is then. */
type Residue = readonly RegExp[] | ((truth: MachineTruth) => readonly RegExp[]);

interface Case {
  readonly kind: string;
  readonly payload?: StepInput["payload"];
  /** What tells one machine's run from another's of the same plan. */
  readonly params?: (nth: number) => Record<string, string>;
  /** What the run, and then the machine, must say of what is left. */
  readonly residue: Residue;
  /** The same when the BMC is dead, where undoing needs it. A connection over SSH that is open may still serve. */
  readonly residueWhenDead?: readonly RegExp[];
  /** On the machine itself, soon after. */
  readonly truth?: (truth: MachineTruth) => boolean;
  /** Faults that keep it in the middle, where the device would be done in a moment. */
  readonly slow?: object;
}

const CASES: readonly Case[] = [
  { kind: "reboot", payload: { mode: "bmc" }, residue: [/^reboot: the machine may go down later/] },
  {
    kind: "netboot",
    payload: { mode: "PXE" },
    residue: [],
    residueWhenDead: [/^netboot: the machine may still be set to boot .* \(undoing it failed: /],
    slow: { method: "PATCH", path: "/redfish/v1/Systems", fault: { type: "latency", ms: 1_500 } },
    truth: ({ boot_override }) => boot_override.enabled === "Disabled",
  },
  {
    kind: "repave",
    payload: { image_ref: "ubuntu:22.04-k8s" },
    residue: [/^repave: the installation of .* may have begun/],
    residueWhenDead: [/^repave: the installation of .* \(undoing it failed: /],
    truth: ({ media }) => media === null,
  },
  { kind: "join", residue: [/^join: the machine may have joined its cluster/] },
  { kind: "verify", residue: [] },
  {
    kind: "ssh",
    payload: { script_ref: "wait.sh" },
    residue: [/^ssh: script wait.sh may have been carried out in part/],
  },
  {
    kind: "net",
    payload: { params: { action: "reconfigure" } },
    params: (nth) => ({ netplan: `network: {version: 2, ethernets: {eth0: {addresses: [127.98.0.${nth}/8]}}}` }),
    // A pass may have confirmed it just before: then it stays, and that is what is said of it.
    residue: ({ answers_at }) =>
      answers_at.length === 1
        ? []
        : [/^net: the network change was confirmed before it could be reverted, and is in force/],
  },
  { kind: "rma", payload: { reason: "broken" }, residue: [/^rma: the machine may be off/] },
];

let bench: RunBench;
let unused: string[];
beforeAll(async () => {
  bench = await startRunBench({
    speed: 4,
    site: "racks=2",
    runbooks: new Runbooks({ "wait.sh": "sleep 100000\n", "fail.sh": "exit 3\n" }),
  });
  unused = bench.simulated.map(({ machine_id }) => machine_id);
  for (const { kind, payload = {} } of CASES)
    await createPlan(bench.deps, tester, {
      planId: `plan-${kind}`,
      displayName: kind,
      steps: [{ name: kind, kind, payload, timeoutSeconds: 600, maxRetries: 2 }],
    });
});
afterAll(() => bench.close());

test("every kind of step is canceled", () => {
  expect(CASES.map(({ kind }) => kind).sort()).toEqual([...allSteps.keys()].sort());
});

/** A run that is in the middle of its step: it has begun to act, or, where nothing is done, to look. */
async function inTheMiddle({ kind, params, slow }: Case): Promise<{ machineId: string; runId: string }> {
  const machineId = unused.shift() ?? "";
  const nth = unused.length;
  await bench.lifecycle.acceptMachine({ machineId });
  if (slow) await bench.fault({ device: machineId, ...slow });
  const { runId } = await bench.runs.startRun({
    requestId: "r",
    machineId,
    planId: `plan-${kind}`,
    ...(params && { params: params(nth) }),
  });
  const visit = `facts -> 'steps' -> 0 ->> '${kind === "verify" ? "evidence" : "actingAt"}'`;
  const begun = `select 1 from runs where id = $1 and state = 'RUNNING' and ${visit} is not null`;
  await eventually(async () => (await bench.db.query(begun, [runId])).length > 0, {
    what: `${kind} is in the middle of it`,
    seen: async () => JSON.stringify(await bench.db.query("select state, facts from runs where id = $1", [runId])),
  });
  return { machineId, runId };
}

/** Canceled in time, off the machine, and with what is left listed on both. */
async function expectCanceled(runId: string, machineId: string, within: number, residue: Residue) {
  const asked = performance.now();
  await bench.runs.cancelRun({ runId });
  const run = await bench.ended(runId, within);
  expect(performance.now() - asked).toBeLessThan(within);
  expect(run.phase, JSON.stringify(run.error)).toBe(Run_Phase.CANCELED);
  expect(run.finishedAt).toBeDefined();
  const expected = typeof residue === "function" ? residue(await bench.truth(machineId)) : residue;
  expect(run.residue).toEqual(expected.map((text) => expect.stringMatching(text)));
  const { status } = await bench.machines.getMachine({ machineId });
  expect(status).toMatchObject({
    phase: MachineStatus_Phase.MAINTENANCE,
    effectiveState: MachineStatus_Phase.MAINTENANCE,
    activeRunId: "",
    residue: run.residue,
  });
  expect(status?.conditions.find(({ type }) => type === "NeedsIntervention")?.status ?? false).toBe(false);
  expect(await claims.list(bench.db, [{ kind: "machine", id: machineId }])).toEqual([]);
}

describe("with devices that answer, a cancel in the middle of", { concurrent: true, timeout: 90_000 }, () => {
  test.for(CASES.map((one) => [one.kind, one] as const))(
    "%s ends within 10 s, takes back what it can, and lists the rest on the run and the machine",
    async ([, one]) => {
      const { machineId, runId } = await inTheMiddle(one);
      await expectCanceled(runId, machineId, WITHIN.answering, one.residue);
      const { truth } = one;
      if (truth) await eventually(async () => truth(await bench.truth(machineId)), { what: "it is taken back" });
    },
  );
});

test("with a BMC that takes 4 s for each answer, a cancel does not wait for the pass that is under way", async () => {
  const machineId = unused.shift() ?? "";
  await bench.lifecycle.acceptMachine({ machineId });
  await bench.fault({ device: machineId, method: "GET", fault: { type: "latency", ms: 4_000 } });
  const { runId } = await bench.runs.startRun({ requestId: "slow", machineId, planId: "plan-rma" });
  // The step reads the machine's log, health and firmware before it is begun: more answers than fit into 10 s.
  await eventually(async () => (await bench.runs.getRun({ runId })).phase === Run_Phase.RUNNING, { what: "it looks" });
  await expectCanceled(runId, machineId, WITHIN.answering, []);
  expect((await bench.runs.getRun({ runId })).steps).toEqual([]); // the pass came to nothing, and was no failed attempt
}, 60_000);

describe("with a dead machine, a cancel in the middle of", { concurrent: true, timeout: 150_000 }, () => {
  const DEATHS = [
    ["hangs", [{ type: "hang" }, { type: "ssh_hang" }]],
    ["drops every connection", [{ type: "drop" }, { type: "ssh_refused" }]],
  ] as const;

  test.for(CASES.flatMap((one) => DEATHS.map(([how, faults]) => [one.kind, how, one, faults] as const)))(
    "%s that %s ends within 60 s, with what may be left listed on the run and the machine",
    async ([, , one, faults]) => {
      const { machineId, runId } = await inTheMiddle(one);
      for (const fault of faults) await bench.fault({ device: machineId, fault });
      await expectCanceled(runId, machineId, WITHIN.dead, one.residueWhenDead ?? one.residue);
    },
  );
});

describe("what a proven step has set for the next boot", { timeout: 90_000 }, () => {
  /** A plan of its own for every try. */
  const armedFirst = async (last: StepInput): Promise<string> => {
    const planId = `plan-armed-${unused.length}`;
    const arm = { name: "arm", kind: "netboot", payload: { mode: "PXE" } };
    await createPlan(bench.deps, tester, { planId, displayName: planId, steps: [arm, last] });
    return planId;
  };
  const start = async (planId: string) => {
    const machineId = unused.shift() ?? "";
    await bench.lifecycle.acceptMachine({ machineId });
    const { runId } = await bench.runs.startRun({ requestId: "r", machineId, planId });
    return { machineId, runId };
  };
  const isDisarmed = (machineId: string) =>
    eventually(async () => (await bench.truth(machineId)).boot_override.enabled === "Disabled", { what: "disarmed" });

  test("is undone when the run is canceled later", async () => {
    const planId = await armedFirst({
      name: "wait",
      kind: "ssh",
      payload: { script_ref: "wait.sh" },
      timeoutSeconds: 600,
    });
    const { machineId, runId } = await start(planId);
    await eventually(async () => (await bench.runs.getRun({ runId })).steps[1]?.state === StepStatus_State.RUNNING, {
      what: "the second step is under way",
    });
    expect((await bench.truth(machineId)).boot_override.enabled).not.toBe("Disabled");
    await expectCanceled(runId, machineId, WITHIN.answering, [/^wait: script wait.sh/]);
    await isDisarmed(machineId);
  });

  test("is undone when a later step fails, and set again before the attempt after it acts", async () => {
    const fails = { name: "fail", kind: "ssh", payload: { script_ref: "fail.sh" }, maxRetries: 0 };
    const { machineId, runId } = await start(await armedFirst(fails));
    expect((await bench.ended(runId)).phase).toBe(Run_Phase.FAILED);
    await isDisarmed(machineId);
    const { run } = await bench.client(RunActionsService).retryRun({ runId, requestId: "again" });
    const again = await bench.ended(run?.runId ?? "");
    const log = Buffer.concat((await bench.logs(again.runId)).map(({ data }) => data)).toString("utf8");
    expect(log).toContain("arm was undone meanwhile, and is done again first");
    expect(log).toContain("[netboot] next boot");
    expect(again.steps).toMatchObject([{ name: "arm", carriedOver: false }, { name: "fail" }]);
    await isDisarmed(machineId);
  });
});

describe("what a canceled run left behind", () => {
  const reboot = CASES[0] as Case;

  test("stays on the machine until somebody ends its maintenance", async () => {
    const { machineId, runId } = await inTheMiddle(reboot);
    await bench.runs.cancelRun({ runId });
    await bench.ended(runId, WITHIN.answering);
    expect((await bench.machines.getMachine({ machineId })).status?.residue).toHaveLength(1);
    await bench.lifecycle.exitMaintenance({ machineId });
    const { status } = await bench.machines.getMachine({ machineId });
    expect(status).toMatchObject({ phase: MachineStatus_Phase.READY, residue: [] });
  });
});
