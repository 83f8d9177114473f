import { describe, expect, test } from "vitest";
import {
  MachineStatus_Phase,
  type Run,
  Run_Phase,
  StepStatus_State,
} from "../../../contract/baremetal/v1/baremetal_pb.js";
import { RunActionsService } from "../../../contract/millwright/v1/run_pb.js";
import { setMachineCredentials } from "../../../src/services/machine/credentials.ts";
import { eventually } from "../../support/eventually.ts";
import { explainOn } from "../../support/explain-bench.ts";
import { type RunBench, startRunBench, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** What people do with ended runs, carried out on simulated machines. */
let bench: RunBench;
let unused: string[];
beforeAll(async () => {
  bench = await startRunBench();
  unused = bench.simulated.map(({ machine_id }) => machine_id);
});
afterAll(() => bench.close());

const RESET = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
const EJECT = "/redfish/v1/Managers/bmc/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia";
const REPAVE_STEPS = ["set-netboot", "reboot-to-netboot", "repave-image", "join-cluster", "verify-in-cluster"];

function machine(): string {
  const id = unused.shift();
  if (id === undefined) throw new Error("there is no machine left");
  return id;
}

const show = (machineId: string) => bench.machines.getMachine({ machineId });
const clearFaults = () => bench.control("DELETE", "/faults");
const start = async (machineId: string, type: string) =>
  (await bench.runs.startRun({ requestId: "start", machineId, type })).runId;
type Verb = "retryRun" | "resumeRun" | "rerunRun" | "restartRunClean" | "adoptRun";
async function act(verb: Verb, runId: string): Promise<Run> {
  const { run } = await bench.client(RunActionsService)[verb]({ runId, requestId: `${verb} of ${runId}` });
  return bench.ended(run?.runId ?? "");
}
const stepsOf = (run: Run) => run.steps.map(({ name, carriedOver }) => [name, carriedOver]);
async function failed(runId: string, step: string): Promise<Run> {
  const run = await bench.ended(runId);
  expect(run).toMatchObject({ phase: Run_Phase.FAILED, jobState: "failed_retryable" });
  expect(run.steps.at(-1)).toMatchObject({ name: step, state: StepStatus_State.FAILED });
  return run;
}
async function succeeded(run: Run, jobState = "completed"): Promise<void> {
  expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
  expect(run).toMatchObject({ jobState, attempt: 2 });
}

/** Checks the network, then reboots: two steps, the second of which can be made to fail. */
async function twoSteps(planId: string, timeoutSeconds: number): Promise<string> {
  await bench.plans.createPlan({
    plan: {
      planId,
      steps: [
        { name: "check", kind: { case: "ssh", value: { scriptRef: "verify_network.sh" } } },
        { name: "boot", timeoutSeconds, maxRetries: 0, kind: { case: "reboot", value: { mode: "bmc" } } },
      ],
    },
  });
  return planId;
}

describe("a retry", () => {
  test("does the failed step once more, and not what was proven", async () => {
    const id = machine();
    const planId = await twoSteps("plan-to-retry", 60);
    await bench.fault({ device: id, method: "POST", path: RESET, fault: { type: "status", status: 400 } });
    const { runId } = await bench.runs.startRun({ requestId: "start", machineId: id, planId });
    await failed(runId, "boot");
    const before = await bench.truth(id);
    await clearFaults();
    const run = await act("retryRun", runId);
    await succeeded(run);
    expect(stepsOf(run)).toEqual([
      ["check", true],
      ["boot", false],
    ]);
    const after = await bench.truth(id);
    expect(after.effects.resets).toBe((before.effects.resets ?? 0) + 1);
    expect((await show(id)).status).toMatchObject({ activeRunId: "", lastRunId: run.runId });
  });

  test("that succeeds returns the machine to the phase in which the job found it, and a run of its own does not", async () => {
    const id = machine();
    await bench.lifecycle.acceptMachine({ machineId: id });
    const planId = await twoSteps("plan-to-return", 60);
    const { READY, MAINTENANCE } = MachineStatus_Phase;
    await bench.fault({ device: id, method: "POST", path: RESET, fault: { type: "status", status: 400 } });
    const { runId } = await bench.runs.startRun({ requestId: "start", machineId: id, planId });
    await failed(runId, "boot");
    await clearFaults();
    const other = await bench.runs.startRun({ requestId: "other", machineId: id, type: "REBOOT" });
    expect((await bench.ended(other.runId)).phase).toBe(Run_Phase.SUCCEEDED);
    expect((await show(id)).status?.phase).toBe(MAINTENANCE);
    const again = machine();
    await bench.lifecycle.acceptMachine({ machineId: again });
    await bench.fault({ device: again, method: "POST", path: RESET, fault: { type: "status", status: 400 } });
    const begun = await bench.runs.startRun({ requestId: "start", machineId: again, planId });
    await failed(begun.runId, "boot");
    expect((await show(again)).status?.phase).toBe(MAINTENANCE);
    await clearFaults();
    await succeeded(await act("retryRun", begun.runId));
    expect((await show(again)).status?.phase).toBe(READY);
  });
});

describe("a resume", () => {
  test("finds that people did it meanwhile, and does nothing", async () => {
    const id = machine();
    const planId = await twoSteps("plan-to-resume", 2);
    await bench.fault({ device: id, path: RESET, fault: { type: "lie_accept" } });
    const { runId } = await bench.runs.startRun({ requestId: "start", machineId: id, planId });
    await failed(runId, "boot");
    for (const power of ["off", "on"]) await bench.control("POST", `/devices/${id}/power`, { power });
    await eventually(async () => (await bench.truth(id)).os.up, { what: "the machine is up again" });
    const { resets } = (await bench.truth(id)).effects;
    const run = await act("resumeRun", runId); // the BMC still lies: only what was done by hand can prove it
    await succeeded(run);
    expect((await bench.truth(id)).effects.resets).toBe(resets);
    expect(stepsOf(run)).toEqual([
      ["check", true],
      ["boot", false],
    ]);
    await clearFaults();
  });

  test("of a run that was canceled in an installation goes on with it", async () => {
    const id = machine();
    const runId = await start(id, "REPAVE");
    await eventually(async () => (await bench.truth(id)).media !== null, { what: "the medium is inserted" });
    await bench.runs.cancelRun({ runId });
    expect(await bench.ended(runId)).toMatchObject({ phase: Run_Phase.CANCELED, jobState: "cancelled" });
    expect((await bench.truth(id)).media).toBeNull();
    const run = await act("resumeRun", runId);
    await succeeded(run);
    expect(run.steps.map(({ name }) => name)).toEqual(REPAVE_STEPS);
    expect(run.steps.map(({ carriedOver }) => carriedOver)).toEqual([true, true, false, false, false]);
    expect((await bench.truth(id)).effects).toMatchObject({ installs: 1, joins: 1 });
    expect((await show(id)).status?.phase).toBe(MachineStatus_Phase.IN_SERVICE);
  }, 120_000);
});

describe("a step that failed for good", () => {
  test("is undone: the medium does not stay in the drive", async () => {
    const id = machine();
    await bench.fault({ device: id, method: "POST", path: RESET, after: 1, fault: { type: "status", status: 400 } });
    const run = await failed(await start(id, "REPAVE"), "repave-image");
    expect(run.residue).toEqual([]);
    const truth = await bench.truth(id);
    expect(truth.media).toBeNull();
    expect(truth.boot_override.enabled).not.toBe("Continuous");
    await clearFaults();
  });
});

describe.each([
  ["a restart clean", "restartRunClean"],
  ["a rerun of a run that failed", "rerunRun"],
] as const)("%s", (_, verb) => {
  test("undoes first what the attempt before could not, and then does everything", async () => {
    const id = machine();
    await bench.fault({ device: id, method: "POST", path: RESET, after: 1, fault: { type: "status", status: 400 } });
    await bench.fault({ device: id, method: "POST", path: EJECT, fault: { type: "status", status: 503 } });
    const runId = await start(id, "REPAVE");
    const first = await failed(runId, "repave-image");
    expect(first.residue).toEqual([expect.stringMatching(/^repave-image: .*undoing it failed/)]);
    expect((await bench.truth(id)).media).not.toBeNull();
    await clearFaults();
    const run = await act(verb, runId);
    await succeeded(run);
    expect(stepsOf(run)).toEqual(REPAVE_STEPS.map((name) => [name, false]));
    const said = (await bench.logs(run.runId)).map(({ data }) => Buffer.from(data).toString()).join("");
    // What was noted, the token of the installation among it, is told to nobody.
    const told = await bench.db.query("select data from journal where kind = 'run' and id = any($1)", [
      [runId, run.runId],
    ]);
    expect(told.length).toBeGreaterThan(10);
    expect(JSON.stringify(told)).not.toMatch(/evidence|token/);
    expect(said.indexOf("what it had begun was undone")).toBeGreaterThan(-1);
    expect(said.indexOf("what it had begun was undone")).toBeLessThan(said.indexOf("step set-netboot begins"));
    expect((await bench.truth(id)).media).toBeNull();
  }, 120_000);
});

describe("what could not be undone because the BMC rejected the credentials", () => {
  const residueOf = async (id: string) => (await show(id)).status?.residue;
  const recordsOf = async (id: string) => {
    const [row] = await bench.db.query<{ records: unknown }>(
      "select facts -> 'residueRecords' as records from machines where id = $1",
      [id],
    );
    return row?.records;
  };
  /** In the middle of an installation, with its medium in the drive. */
  async function lockedOut(id: string, where: object): Promise<string> {
    const runId = await start(id, "REPAVE");
    await eventually(async () => (await bench.truth(id)).media !== null, { what: "the medium is inserted" });
    await bench.fault({ device: id, ...where, fault: { type: "wrong_credentials" } });
    return runId;
  }
  async function giveRightCredentials(id: string): Promise<void> {
    await clearFaults();
    const { bmc_username, bmc_password } = bench.simulated.find(({ machine_id }) => machine_id === id) ?? {};
    const bmc = { bmcUsername: bmc_username ?? "", bmcPassword: bmc_password ?? "" };
    await setMachineCredentials(bench.deps, tester, { machineId: id, ...bmc, sshUsername: "", sshPrivateKey: "" });
  }

  test.each([
    ["failed", "retryRun", {}],
    // Only where it is taken back: the run is not to fail by itself before it is canceled.
    ["was canceled", "rerunRun", { method: "POST", path: EJECT }],
  ] as const)(
    "when a run %s is so first once there are right ones, also after a %s in vain: nothing is installed twice",
    async (how, verb, where) => {
      const id = machine();
      const runId = await lockedOut(id, where);
      if (how === "was canceled") await bench.runs.cancelRun({ runId });
      const first = await bench.ended(runId, 10_000);
      expect(first.phase).toBe(how === "failed" ? Run_Phase.FAILED : Run_Phase.CANCELED);
      expect(await residueOf(id)).toEqual([
        expect.stringMatching(
          /^repave-image: .*\(undoing it failed: (the medium is still inserted: .*\()?wrong credentials/,
        ),
      ]);
      expect(await recordsOf(id)).toMatchObject([{ step: "repave-image", notUndone: { how: "failed" } }]);
      // As the version before keeps it, which knows the lines alone.
      if (how === "was canceled")
        await bench.db.execute("update machines set facts = facts - 'residueRecords' where id = $1", [id]);

      const inVain = await act(verb, runId);
      expect(inVain).toMatchObject({ phase: Run_Phase.FAILED, jobState: "failed_retryable", attempt: 2 });
      expect(inVain.error?.message).toMatch(
        /^repave-image: what step repave-image of the previous attempt left is not undone: .*wrong credentials/,
      );
      expect(inVain.error?.message).toContain(`millwright machine set-credentials ${id}`);
      const { nextCommands } = await explainOn(bench, "run", inVain.runId);
      expect(nextCommands[0]?.command).toBe(`millwright machine set-credentials ${id} --bmc-username <name>`);
      expect(await residueOf(id)).toHaveLength(1);
      expect(await recordsOf(id)).toMatchObject([
        { notUndone: { cause: { code: expect.stringMatching(/^(credentials_rejected|sign_in_stopped)$/) } } },
      ]);
      expect((await bench.truth(id)).media).not.toBeNull();

      // An installation that goes on by itself comes to its end: cut short, it would leave no system to restart.
      await eventually(async () => (await bench.truth(id)).os.up, { what: "a system runs" });
      await giveRightCredentials(id);
      const before = (await bench.truth(id)).effects;
      const run = await act(verb, inVain.runId);
      expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
      expect(run).toMatchObject({ jobState: "completed", attempt: 3, residue: [] });
      const { media, effects } = await bench.truth(id);
      expect(media).toBeNull();
      expect(effects.installs_started).toBe((before.installs_started ?? 0) + 1);
      expect(await residueOf(id)).toEqual([]);
    },
    120_000,
  );
});

describe("an adoption", () => {
  test("takes what people did by hand as done: the job is reconciled, and nothing was done to the machine", async () => {
    const id = machine();
    const runId = await start(id, "REPAVE");
    await eventually(async () => (await bench.runs.getRun({ runId })).currentStep === "join-cluster", {
      what: "it is installed",
      within: 40_000,
    });
    await bench.runs.cancelRun({ runId });
    await bench.ended(runId);
    const { kubernetes } = await bench.truth(id);
    if (kubernetes.cluster === null) await bench.control("POST", `/devices/${id}/join`, { cluster: "default-cluster" });
    await eventually(async () => (await bench.truth(id)).kubernetes.cluster !== null, { what: "it has joined" });
    const before = (await bench.truth(id)).effects;
    const run = await act("adoptRun", runId);
    await succeeded(run, "reconciled");
    const after = (await bench.truth(id)).effects;
    expect([after.resets, after.installs_started]).toEqual([before.resets, before.installs_started]);
    expect(run.steps.map(({ carriedOver }) => carriedOver)).toEqual([true, true, true, false, false]);
    expect((await show(id)).status?.phase).toBe(MachineStatus_Phase.IN_SERVICE);
  }, 120_000);

  test("that finds a step undone has FAILED there, and has touched nothing", async () => {
    const id = machine();
    await bench.fault({ device: id, method: "POST", path: RESET, fault: { type: "status", status: 400 } });
    const runId = await start(id, "REBOOT");
    await failed(runId, "reboot");
    await clearFaults();
    const { ssh_commands: _, ...before } = (await bench.truth(id)).effects; // looking takes commands too
    const run = await act("adoptRun", runId);
    expect(run).toMatchObject({ phase: Run_Phase.FAILED, attempt: 2, jobState: "failed_retryable", residue: [] });
    expect(run.error?.message).toBe("reboot: cannot be taken as done: the previous system still runs");
    expect((await bench.truth(id)).effects).toMatchObject(before);
    const { status } = await show(id);
    expect(status).toMatchObject({ phase: MachineStatus_Phase.MAINTENANCE, lastRunId: run.runId });
    expect(status?.banners).toContain("NeedsIntervention");
  });
});

describe("a rerun", () => {
  test("of a run that succeeded does everything once more", async () => {
    const id = machine();
    const runId = await start(id, "REBOOT");
    expect((await bench.ended(runId)).phase).toBe(Run_Phase.SUCCEEDED);
    const run = await act("rerunRun", runId);
    await succeeded(run);
    expect(stepsOf(run)).toEqual([["reboot", false]]);
    expect((await bench.truth(id)).effects).toMatchObject({ resets: 2 });
  });
});
