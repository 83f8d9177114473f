import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { type Run, Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import type { ExplainResponse } from "../../../contract/millwright/v1/explain_pb.js";
import { PROFILE_NAMES } from "../../../simulator/devices/profile.ts";
import { type FaultType, faultRuleSchema } from "../../../simulator/faults/fault-rule.ts";
import { setPowerShelfMaintenance } from "../../../src/services/power-shelf/power-shelves.ts";
import type { PowerShelfRecord } from "../../../src/store/power-shelf/power-shelves.ts";
import { eventually } from "../../support/eventually.ts";
import {
  carryOut,
  type ExplainBench,
  explainOn,
  type SimulatedShelf,
  startExplainBench,
  untilExplained,
} from "../../support/explain-bench.ts";
import type { MachineTruth, SimulatedMachine } from "../../support/machine-site.ts";
import { RACK_FAULTS } from "../../support/racks/rack-faults.ts";
import { tester } from "../../support/run-bench.ts";

/**
 * For each fault that the simulator knows: it is injected, `explain` must name that cause, the operator puts right what only hands
 * can, and the first command that was suggested must help.
 */
vi.setConfig({ maxConcurrency: 20 }); // each test does little but wait

let bench: ExplainBench;
let freeShelves: ExplainBench["shelves"][number][];
let freeMachines: SimulatedMachine[];
beforeAll(async () => {
  bench = await startExplainBench({ site: "racks=3", speed: 400 });
  freeShelves = [...bench.shelves];
  freeMachines = [...bench.simulated];
  for (const [planId, step] of Object.entries(PLANS))
    await bench.plans.createPlan({ plan: { planId, steps: [{ ...step, maxRetries: 0 }] } });
});
afterAll(() => bench.close());

type Step = NonNullable<Parameters<ExplainBench["plans"]["createPlan"]>[0]["plan"]>["steps"] extends
  | (infer S)[]
  | undefined
  ? S
  : never;

/**
 * One step each, with no second attempt. What goes wrong lasts as long as the step may: all wait at the same time. What goes well has
 * many times what it takes, also on a machine that has ten times as much to do as it can.
 */
const PLENTY_SECONDS = 30;
const PLANS: Readonly<Record<string, Step>> = {
  "plan-script": {
    name: "script",
    timeoutSeconds: PLENTY_SECONDS,
    kind: { case: "ssh", value: { scriptRef: "verify_network.sh" } },
  },
  "plan-reboot": { name: "reboot", timeoutSeconds: PLENTY_SECONDS, kind: { case: "reboot", value: { force: true } } },
  "plan-restart": {
    name: "restart",
    timeoutSeconds: PLENTY_SECONDS,
    kind: { case: "reboot", value: { force: false } },
  },
  "plan-http": {
    name: "http",
    timeoutSeconds: PLENTY_SECONDS,
    kind: { case: "netboot", value: { mode: "HTTP" } },
  },
  "plan-pave": {
    name: "pave",
    timeoutSeconds: PLENTY_SECONDS,
    kind: { case: "repave", value: { imageRef: "ubuntu:22.04-k8s" } },
  },
  "plan-join": {
    name: "join",
    timeoutSeconds: PLENTY_SECONDS,
    kind: { case: "join", value: { clusterRef: "default-cluster" } },
  },
};

interface Case {
  /** Puts right at the rack what no command can. */
  readonly mend: () => Promise<void>;
  readonly explained: ExplainResponse;
  readonly id: string;
}

interface Row {
  readonly fault: FaultType;
  readonly title: string;
  /** Injects the fault and waits until the explanation names the cause. */
  readonly meet: () => Promise<Case>;
  readonly names: RegExp;
  /** The first command, without its arguments. */
  readonly first: string;
  /** Carries the first command out, and waits until it has helped. */
  readonly help: (met: Case, command: string) => Promise<void>;
}

// Power shelves

function takeShelf(): { shelf: PowerShelfRecord; device: SimulatedShelf } {
  const taken = freeShelves.shift();
  if (!taken) throw new Error("no shelf is left");
  return taken;
}

const powerOff = (id: string) =>
  setPowerShelfMaintenance(bench.deps, tester, { powerShelfIds: [id], operation: "power_off", reference: "FAULT-1" });

const names = (words: RegExp) => (explanation: ExplainResponse) => words.test(explanation.headline);

/** Asks for power off on a shelf whose BMC misbehaves so. */
const onShelf =
  (words: RegExp, rule: object, before: (id: string) => Promise<void> = async () => {}) =>
  async (): Promise<Case> => {
    const { shelf, device } = takeShelf();
    const mend = await bench.break({ device: device.id, ...rule });
    await powerOff(shelf.id);
    await before(shelf.id);
    const explained = await untilExplained(bench, ["power_shelf", shelf.id], names(words), `${shelf.id}: ${words}`);
    return { mend, explained, id: shelf.id };
  };

/** As if it had been at it for longer than it may; once it has said what it waits for. */
async function letTheDeadlinePass(id: string): Promise<void> {
  await eventually(
    async () => {
      const { state, outcome } = await bench.shelf(id);
      return state.name === "maintenance" && outcome !== null;
    },
    { what: `${id} waits` },
  );
  await bench.db.query("update power_shelves set state_since = now() - interval '5 minutes' where id = $1", [id]);
  await bench.db.query("update work set wake_at = least(wake_at, now()) where id = $1 and lease_until is null", [id]);
  await eventually(async () => (await bench.shelf(id)).state.name === "error", { what: `${id} is in error` });
}

const untilOff = (id: string) =>
  eventually(
    async () => {
      const { state, facts, lastMaintenanceRequest } = await bench.shelf(id);
      return state.name === "ready" && facts.powerState === "off" && lastMaintenanceRequest?.outcome === "completed";
    },
    { what: `${id} is off`, within: 60_000, seen: async () => JSON.stringify(await bench.shelf(id)) },
  );

/** What was wrong is put right; the command then has the operation completed. */
const completesIt = async ({ mend, id }: Case, command: string): Promise<void> => {
  await mend();
  await carryOut(bench, command);
  await untilOff(id);
  const well = /is ready, with power off; nothing is wrong/;
  await untilExplained(bench, ["power_shelf", id], names(well), `${id} is well`);
};

// Runs on machines

function takeMachine(): SimulatedMachine {
  const taken = freeMachines.shift();
  if (!taken) throw new Error("no machine is left");
  return taken;
}

interface OnMachine {
  readonly planId: string;
  readonly rule: object;
  /** Where the fault is, when not at the machine. */
  readonly device?: string;
  readonly before?: (machine: SimulatedMachine) => Promise<void>;
}

const machineOf = new Map<string, SimulatedMachine>();

/** Starts a run on a machine that misbehaves so, and waits until it has FAILED. */
const onMachine =
  (words: RegExp, { planId, rule, device, before }: OnMachine) =>
  async (): Promise<Case> => {
    const machine = takeMachine();
    const machineId = machine.machine_id;
    await before?.(machine);
    const mend = await bench.break({ device: device ?? machineId, ...rule });
    const { runId } = await bench.runs.startRun({ requestId: "r", machineId, planId });
    machineOf.set(runId, machine);
    const run = await bench.ended(runId, 60_000);
    expect(run.phase).toBe(Run_Phase.FAILED);
    const explained = await untilExplained(bench, ["run", runId], names(words), `${runId}: ${words}`, 1_000);
    // Whoever asks about the machine learns the same, and what to do comes first there too.
    const aboutMachine = await explainOn(bench, "machine", machineId);
    expect(aboutMachine.headline).toMatch(words);
    expect(aboutMachine.nextCommands[0]).toEqual(explained.nextCommands[0]);
    expect(explained.lastFailure).toMatchObject({ runId, step: run.steps.at(-1)?.name, attempt: 1 });
    return { mend, explained, id: runId };
  };

const machineWith = (runId: string): SimulatedMachine => {
  const machine = machineOf.get(runId);
  if (!machine) throw new Error(`${runId} is not ours`);
  return machine;
};

/** The newest run of the machine succeeds. */
async function untilSucceeded(machineId: string, not: string): Promise<Run> {
  const { runs } = await bench.runs.listRuns({ filter: `machine_id=${machineId}` });
  const [newest] = runs;
  expect(newest?.runId).not.toBe(not);
  const run = await bench.ended(newest?.runId ?? "", 60_000);
  expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
  return run;
}

const retrySucceeds = async ({ mend, id }: Case, command: string): Promise<void> => {
  await mend();
  await carryOut(bench, command);
  await untilSucceeded(machineWith(id).machine_id, id);
  expect((await explainOn(bench, "run", id)).headline).toContain("FAILED");
};

/** What the explanation suggests after its first command. */
const thenRetry = async (met: Case): Promise<void> => {
  const { nextCommands } = await explainOn(bench, "run", met.id);
  const retry = nextCommands.find(({ command }) => command.startsWith("millwright run retry"));
  await retrySucceeds(met, retry?.command ?? "");
};

/** As after an installation that proved its key: what the owner says must win over it. */
async function pinByInstallation({ machine_id }: SimulatedMachine): Promise<void> {
  const { os } = await bench.control<MachineTruth>("GET", `/devices/${machine_id}`);
  await bench.db.execute("update machines set facts = facts || $2 where id = $1", [
    machine_id,
    { sshHostKey: os.host_key },
  ]);
}

const COMMAND = { method: "POST", path: "*/Actions/*" };
const REFRESH = "power-shelf refresh";

const shelfRow = (fault: FaultType, title: string, words: RegExp, rule: object): Row => ({
  fault,
  title,
  names: words,
  first: REFRESH,
  meet: onShelf(words, rule),
  help: completesIt,
});

const runRow = (fault: FaultType, title: string, words: RegExp, on: OnMachine): Row => ({
  fault,
  title,
  names: words,
  first: "run retry",
  meet: onMachine(words, on),
  help: retrySucceeds,
});

const IDLE = /accepts the command, and nothing changes/;
const METER = /meter contradicts what its BMC reports/;
const REJECTED = /BMC (rejects|keeps rejecting) the credentials/;
const HOST_KEY = /shows another SSH host key than the one that is pinned/;

const ROWS: readonly Row[] = [
  shelfRow("status", "a shelf's BMC that answers commands with 503", /answers with an error of its own/, {
    ...COMMAND,
    fault: { type: "status", status: 503 },
  }),
  shelfRow("drop", "a shelf's BMC that cuts every connection", /BMC cannot be reached/, { fault: { type: "drop" } }),
  shelfRow("flap", "a shelf's BMC that comes and goes", /BMC cannot be reached/, {
    fault: { type: "flap", up_ms: 1, down_ms: 60_000 },
  }),
  shelfRow("hang", "a shelf's BMC that never answers", /does not answer in time/, { fault: { type: "hang" } }),
  shelfRow("latency", "a shelf's BMC that answers too late", /does not answer in time: it is slow/, {
    fault: { type: "latency", ms: 20_000 },
  }),
  shelfRow("garbage", "a shelf's BMC that answers with garbage", /something that makes no sense/, {
    method: "GET",
    fault: { type: "garbage" },
  }),
  shelfRow("wrong_serial", "a shelf at whose address another one answers", /another device answers at its address/, {
    fault: { type: "wrong_serial", serial: "SOMEBODY-ELSE" },
  }),
  {
    fault: "wrong_credentials",
    title: "a shelf whose BMC rejects the credentials",
    names: REJECTED,
    first: "power-shelf set-credentials",
    meet: onShelf(REJECTED, { fault: { type: "wrong_credentials" } }),
    async help({ mend, id }, command) {
      await mend();
      const { bmc } = await bench.shelf(id);
      const rows = await bench.control<
        readonly { bmc_mac_address: string; bmc_username: string; bmc_password: string }[]
      >("GET", "/inventory");
      const account = rows.find(({ bmc_mac_address }) => bmc_mac_address === bmc.mac);
      await carryOut(bench, command, { "<name>": account?.bmc_username ?? "" }, account?.bmc_password);
      const mended = await untilExplained(
        bench,
        ["power_shelf", id],
        ({ nextCommands }) => nextCommands[0]?.command.includes("maintenance power-off") ?? false,
        "asking again comes first",
      );
      await completesIt({ mend: async () => {}, explained: mended, id }, mended.nextCommands[0]?.command ?? "");
    },
  },
  {
    fault: "lie_accept",
    title: "a shelf that accepts the command and does nothing",
    names: IDLE,
    first: "power-shelf maintenance power-off",
    meet: onShelf(IDLE, { fault: { type: "lie_accept" } }, letTheDeadlinePass),
    help: completesIt,
  },
  {
    fault: "lie_state",
    title: "a shelf that says that it is off while its meter says otherwise",
    names: METER,
    first: "power-shelf maintenance power-off",
    meet: onShelf(METER, { fault: { type: "lie_state" } }, letTheDeadlinePass),
    help: completesIt,
  },
  runRow("lie_accept", "a machine that accepts a reset and does nothing", IDLE, {
    planId: "plan-reboot",
    rule: { fault: { type: "lie_accept" } },
  }),
  runRow("ssh_refused", "a machine that refuses SSH", /does not answer over SSH/, {
    planId: "plan-script",
    rule: { fault: { type: "ssh_refused" } },
  }),
  runRow("ssh_hang", "a machine whose SSH never says a word", /does not answer over SSH/, {
    planId: "plan-script",
    rule: { fault: { type: "ssh_hang" } },
  }),
  runRow("install_fails", "a machine on which the installation fails", /installation did not come up/, {
    planId: "plan-pave",
    rule: { fault: { type: "install_fails" } },
  }),
  runRow("join_fails", "a machine on which joining fails", /joining the cluster failed/, {
    planId: "plan-join",
    rule: { fault: { type: "join_fails" } },
  }),
  {
    fault: "wrong_host_key",
    title: "a machine that shows another host key",
    names: HOST_KEY,
    first: "machine update",
    meet: onMachine(HOST_KEY, {
      planId: "plan-script",
      rule: { fault: { type: "wrong_host_key" } },
      before: pinByInstallation,
    }),
    async help({ mend, explained, id }, command) {
      // It stays: the machine was installed anew, and this is its key from now on.
      await carryOut(bench, command);
      await thenRetry({ mend: async () => {}, explained, id });
      await mend();
    },
  },
  {
    fault: "wrong_credentials",
    title: "a machine whose BMC rejects the credentials",
    names: REJECTED,
    first: "machine set-credentials",
    meet: onMachine(REJECTED, { planId: "plan-reboot", rule: { fault: { type: "wrong_credentials" } } }),
    async help(met, command) {
      await met.mend();
      const { bmc_username, bmc_password } = machineWith(met.id);
      await carryOut(bench, command, { "<name>": bmc_username }, bmc_password);
      await thenRetry({ ...met, mend: async () => {} });
    },
  },
];

describe.concurrent("what is wrong is named, and the first command that is suggested helps:", () => {
  test.each(ROWS.map((row) => [row.fault, row.title, row] as const))(
    "%s: %s",
    async (_fault, _title, row) => {
      const met = await row.meet();
      const [first] = met.explained.nextCommands;
      expect(first?.command).toMatch(new RegExp(`^millwright ${row.first} `));
      expect(met.explained.lastFailure?.message).toBeTruthy();
      await row.help(met, first?.command ?? "");
    },
    120_000,
  );
});

test.concurrent("an RMA of a node that was not drained sends to maintenance first, and then succeeds", async () => {
  const machineId = await inCluster();
  const { runId } = await bench.runs.startRun({ requestId: "r", machineId, type: "RMA" });
  expect((await bench.ended(runId, 60_000)).phase).toBe(Run_Phase.FAILED);
  const { headline, nextCommands } = await explainOn(bench, "machine", machineId);
  expect(headline).toMatch(/its node is not drained$/);
  const [first, second] = nextCommands.map(({ command }) => command);
  await carryOut(bench, first ?? "", { "<text>": "to-be-drained" });
  await carryOut(bench, second ?? "");
  await untilExplained(bench, ["machine", machineId], names(/is drained/), `${machineId} is drained`);
  const retry = nextCommands.find(({ command }) => command.startsWith("millwright run retry"));
  await carryOut(bench, retry?.command ?? "");
  await untilSucceeded(machineId, runId);
}, 60_000);

test.concurrent("a network change that netplan refuses tells why, and the run that is suggested with other settings succeeds", async () => {
  const { machine_id: machineId } = takeMachine();
  const params = { netplan: "network: {version: 2, ethernets: {eth0: {addresses: [nowhere]}}}" };
  const { runId } = await bench.runs.startRun({ requestId: "r", machineId, type: "NET_RECONFIG", params });
  expect((await bench.ended(runId, 60_000)).phase).toBe(Run_Phase.FAILED);
  const { headline, lastFailure, nextCommands } = await explainOn(bench, "run", runId);
  expect(headline).toMatch(/netplan refuses the settings/);
  expect(lastFailure?.message).toMatch(/it said: .*malformed address 'nowhere'/);
  const command = nextCommands[0]?.command ?? "";
  expect(command).toMatch(/^millwright run start /);
  await carryOut(bench, command.replace("<settings>", '{"network":{"version":2}}'));
  await untilSucceeded(machineId, runId);
}, 60_000);

describe.concurrent("a system that hangs while its BMC answers:", () => {
  async function hung(planId: string, type = ""): Promise<{ machineId: string; runId: string }> {
    const { machine_id: machineId } = takeMachine();
    await bench.control("POST", `/devices/${machineId}/crash`);
    const { runId } = await bench.runs.startRun({ requestId: "r", machineId, planId, type });
    expect((await bench.ended(runId, 60_000)).phase).toBe(Run_Phase.FAILED);
    return { machineId, runId };
  }

  test("a gentle restart has no effect, and the forced one that is suggested first succeeds", async () => {
    const { machineId, runId } = await hung("plan-restart", "REBOOT");
    const { headline, nextCommands } = await explainOn(bench, "run", runId);
    expect(headline).toMatch(IDLE);
    const [first] = nextCommands.map(({ command }) => command);
    expect(first).toBe(
      `millwright run start --machine ${machineId} --type REBOOT --plan plan-restart --param force=true`,
    );
    expect((await explainOn(bench, "machine", machineId)).nextCommands[0]?.command).toBe(first);
    await carryOut(bench, first ?? "");
    await untilSucceeded(machineId, runId);
  }, 120_000);

  test("a script is retried without success until it was reset, as is suggested, and then succeeds", async () => {
    const { machineId, runId } = await hung("plan-script");
    const { headline, nextCommands } = await explainOn(bench, "run", runId);
    expect(headline).toMatch(/does not answer over SSH/);
    const reset = `millwright run start --machine ${machineId} --type REBOOT --param force=true`;
    expect(nextCommands.map(({ command }) => command)).toContain(reset);
    await carryOut(bench, reset);
    const restart = await untilSucceeded(machineId, runId);
    await carryOut(bench, `millwright run retry ${runId}`);
    await untilSucceeded(machineId, restart.runId);
  }, 120_000);
});

const OTHER_BMCS = PROFILE_NAMES.filter((name) => name !== "ideal");

describe.concurrent("whatever its BMC is like:", () => {
  test.each(OTHER_BMCS)(
    "%s: a system that hangs is reset by the command that is suggested first",
    async (profile) => {
      const { machine_id: machineId } = takeMachine();
      await bench.takeOn(machineId, profile);
      await bench.control("POST", `/devices/${machineId}/crash`);
      const { runId } = await bench.runs.startRun({
        requestId: "r",
        machineId,
        planId: "plan-restart",
        type: "REBOOT",
      });
      expect((await bench.ended(runId, 60_000)).phase).toBe(Run_Phase.FAILED);
      const { nextCommands, lastFailure } = await explainOn(bench, "run", runId);
      expect(lastFailure?.message).toBeTruthy();
      const [first] = nextCommands.map(({ command }) => command);
      expect(first).toBe(
        `millwright run start --machine ${machineId} --type REBOOT --plan plan-restart --param force=true`,
      );
      await carryOut(bench, first ?? "");
      await untilSucceeded(machineId, runId);
    },
    120_000,
  );

  test.each(["ideal", "reason_in_message_only"])(
    "%s: its own words say why it refuses",
    async (profile) => {
      const { machine_id: machineId } = takeMachine();
      await bench.takeOn(machineId, profile);
      const { runId } = await bench.runs.startRun({ requestId: "r", machineId, planId: "plan-http" });
      expect((await bench.ended(runId, 60_000)).phase).toBe(Run_Phase.FAILED);
      const { lastFailure } = await explainOn(bench, "run", runId);
      expect(lastFailure?.message).toContain("would conflict with the value of the property Boot/HttpBootUri");
    },
    60_000,
  );
});

/** What is wrong with the cluster is wrong for all that come after. */
const clearFaults = () => bench.control<void>("DELETE", "/faults");

/** Alone, since the others need the cluster. */
test("drop: a cluster whose API cuts every connection is named, and retrying helps once it is back", async () => {
  onTestFinished(clearFaults);
  const words = /the cluster's API does not answer/;
  const rule = { fault: { type: "drop" } };
  const met = await onMachine(words, { planId: "plan-join", rule, device: "default-cluster" })();
  const [first] = met.explained.nextCommands;
  expect(first?.command).toBe(`millwright run retry ${met.id}`);
  await retrySucceeds(met, first?.command ?? "");
}, 60_000);

/** A machine that serves in the cluster, and has what runs there. */
async function inCluster(): Promise<string> {
  const { machine_id: machineId } = takeMachine();
  await bench.control("POST", `/devices/${machineId}/join`, { cluster: "default-cluster" });
  await bench.lifecycle.acceptMachine({ machineId });
  return machineId;
}

/** Alone as well: whatever else is drained meanwhile would be kept too. */
test("status: a disruption budget that keeps pods on a node is named, and the drain goes on by itself once it does not", async () => {
  onTestFinished(clearFaults);
  const machineId = await inCluster();
  const path = "/api/v1/namespaces/*/eviction";
  const fault = { type: "status", status: 429 };
  const mend = await bench.break({ device: "default-cluster", method: "POST", path, fault });
  await bench.lifecycle.enterMaintenance({ machineId });
  const words = /its node is being drained: .*3 pods remain.*a disruption budget keeps default\/web-/;
  const explained = await untilExplained(bench, ["machine", machineId], names(words), `${machineId}: ${words}`);
  expect(explained.nextCommands[0]?.command).toBe(`millwright machine show ${machineId}`);
  expect(await carryOut(bench, explained.nextCommands[0]?.command ?? "")).toContain("a disruption budget keeps");
  await mend();
  await untilExplained(bench, ["machine", machineId], names(/is drained/), `${machineId} is drained`);
}, 60_000);

/** Of machines that boot from the network, which takes a whole server: `e2e/simulated-boot.test.ts` explains them. */
const NETWORK_BOOT_FAULTS = ["hangs_in_post", "loses_lease", "install_dies"];

/** Of rack managers: `racks/rack-manager.test.ts` shows what comes of them. */
const RACK_MANAGER_FAULTS = ["job_never_ends"];

/** Of the simulated MAAS: test/integration/fleet/onboarding.test.ts and decommission.test.ts provoke them, and run what is recommended. */
const MAAS_FAULTS = [
  "commissioning_stuck",
  "commissioning_fails",
  "testing_fails",
  "no_boss_disk",
  "deploy_fails",
  "deploy_datasource_fails",
  "deploy_stuck",
  "erase_fails",
  "release_fails",
  "hardware_sync_silent",
  "hardware_sync_ignored",
  "power_off_ignored",
  "link_refused",
  "images_gone",
];

/** Of the agents of simulated nodes: test/integration/fleet/simulated-agents.test.ts. */
const AGENT_FAULTS = [
  "agent_never_enrols",
  "agent_silent",
  "agent_unhealthy",
  "agent_fails_task",
  "agent_dies_in_task",
  "agent_answers_twice",
];

test("every fault that the simulator knows has a row", () => {
  const known = faultRuleSchema.shape.fault.options.map(({ shape }) => shape.type.value);
  const elsewhere = [...NETWORK_BOOT_FAULTS, ...RACK_FAULTS, ...RACK_MANAGER_FAULTS, ...MAAS_FAULTS, ...AGENT_FAULTS];
  const explained = new Set([...ROWS.map(({ fault }) => fault), ...elsewhere]);
  expect([...explained].toSorted()).toEqual(known.toSorted());
});
