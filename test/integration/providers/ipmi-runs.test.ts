import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Run, Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { createImage } from "../../../src/services/catalog/images.ts";
import { bootNode } from "../../../src/services/install/boot/boot.ts";
import { applyReports } from "../../../src/services/install/reports.ts";
import { createWorkflow } from "../../../src/services/install/workflows.ts";
import { loadInstalls } from "../../../src/store/install/installs.ts";
import { type IpmiSimulator, ipmiMissing, startIpmiSimulator } from "../../support/counterparts/ipmi-simulator.ts";
import { needing } from "../../support/counterparts/needing.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunBench, startRunBench, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/**
 * Real runs on a machine whose BMC is OpenIPMI's. Its chassis is a simulated machine: what the BMC tells the chassis is done to that
 * machine's power, so that its operating system really goes down and comes up with another boot id, as seen over SSH.
 */
describe.skipIf(ipmiMissing !== "")(needing("runs over IPMI", ipmiMissing), () => {
  let bench: RunBench;
  let bmc: IpmiSimulator;
  let directory: string;
  let machineId: string;

  beforeAll(async () => {
    bench = await startRunBench();
    const [machine] = bench.simulated;
    if (machine === undefined) throw new Error("the site has no machine");
    machineId = machine.machine_id;
    directory = mkdtempSync(join(tmpdir(), "millwright-chassis-"));
    const wires = join(directory, "wires.mjs");
    writeFileSync(wires, wiresTo(`${bench.simulator.controlUrl}/devices/${machineId}/power`));
    bmc = await startIpmiSimulator({ serial: machine.serial, chassis: [process.execPath, wires] });

    const { spec } = await bench.machines.getMachine({ machineId });
    if (spec === undefined) throw new Error("the machine has no spec");
    const overIpmi = { ...spec, provider: "ipmi", bmcEndpoint: `${bmc.target.address}:${bmc.target.port}` };
    await bench.machines.updateMachine({ machine: { machineId, spec: overIpmi } });
    await bench.lifecycle.setMachineCredentials({
      machineId,
      bmcUsername: bmc.target.username,
      bmcPassword: bmc.target.password,
    });
    await bench.lifecycle.acceptMachine({ machineId });
  });
  afterAll(async () => {
    await bench.close();
    await bmc.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  let requests = 0;
  async function runPlan(planId: string, ...steps: Step[]): Promise<Run> {
    await bench.plans.createPlan({ plan: { planId, steps } });
    requests += 1;
    const { runId } = await bench.runs.startRun({ requestId: `r-${requests}`, machineId, planId });
    return bench.ended(runId);
  }
  type Step = NonNullable<NonNullable<Parameters<RunBench["plans"]["createPlan"]>[0]["plan"]>["steps"]>[number];
  const activeRun = async () => (await bench.machines.getMachine({ machineId })).status?.activeRunId ?? "";
  const bootId = async () => (await bench.truth(machineId)).os.boot_id;

  test.each([
    ["graceful", false, ["shutdown 1", "power 1"]],
    ["forced", true, ["reset 1"]],
  ] as const)("a %s Reboot restarts the machine once and is proven by its boot id", async (name, force, told) => {
    const before = { bootId: await bootId(), told: (await bmc.told()).length };
    const run = await runPlan(`plan-${name}`, {
      name: "reboot",
      timeoutSeconds: 60,
      kind: { case: "reboot", value: { mode: "bmc", force } },
    });
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    expect((await bmc.told()).slice(before.told)).toEqual(told);
    const now = await bootId();
    expect(now).not.toBe(before.bootId);
    expect(run.steps).toMatchObject([{ message: expect.stringContaining(`boot id ${now}`), retryCount: 0 }]);
  });

  test("what cannot be installed from a medium is installed over the network: PXE, a reset, and the node's own reports", async () => {
    const { deps } = bench;
    await createWorkflow(deps, tester, WORKFLOW);
    const image = { name: "net", kind: "netboot", location: WORKFLOW.id, digest: `sha256:${"0".repeat(64)}` };
    await createImage(deps, tester, { ...image, successProof: "token" });
    const before = (await bmc.told()).length;
    const ended = runPlan("plan-net", {
      name: "install",
      timeoutSeconds: 60,
      // The simulated machine knows nothing of our boot path and goes to its disk: it may be up before its firmware was played.
      maxRetries: 5,
      kind: { case: "repave", value: { imageRef: "net" } },
    });
    const [{ mac_addresses: [mac = ""] = [] } = {}] = bench.simulated;
    const token = await eventually(() => bootAsOrdered(deps, mac), { what: "it boots as a run has ordered" });
    for (const status of ["started", "complete"] as const)
      await applyReports(deps, { requireTokens: true }, [{ report: { mac, status }, address: null, token }]);
    const run = await ended;
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    expect((await bmc.told()).slice(before)).toEqual(expect.arrayContaining(["boot pxe", "reset 1", "boot none"]));
    expect((await loadInstalls(deps.db, [machineId])).things).toMatchObject([{ state: { name: "active" } }]);
  });

  test("SetNetboot arms PXE, which the BMC reads back, and a Reboot follows it in the same run", async () => {
    const run = await runPlan(
      "plan-netboot",
      { name: "arm", kind: { case: "netboot", value: { profile: "pxe-ubuntu-22.04" } } },
      { name: "reboot", timeoutSeconds: 60, kind: { case: "reboot", value: { mode: "bmc", force: true } } },
    );
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    expect(await bmc.boot()).toBe("pxe");
    expect((await bmc.told()).slice(-2)).toEqual(["boot pxe", "reset 1"]);
    expect(run.steps[0]).toMatchObject({ message: "the next boot is from pxe" });
  });

  test("what IPMI cannot do is refused when the run is asked for", async () => {
    const asked = bench.runs.startRun({ requestId: "r-repave", machineId, type: "REPAVE" });
    await expect(asked).rejects.toThrow(/needs imaging, which provider ipmi cannot do/);
  });

  test("a cancel in the middle of a graceful Reboot ends within 10 s, and lists that the machine may stay off", async () => {
    await bmc.setObeysShutdown(false);
    const before = (await bmc.told()).length;
    const ended = runPlan("plan-canceled", {
      name: "reboot",
      timeoutSeconds: 60,
      kind: { case: "reboot", value: { mode: "bmc" } },
    });
    await eventually(async () => (await bmc.told()).length > before, { what: "the system was asked to go down" });
    const asked = performance.now();
    await bench.runs.cancelRun({ runId: await activeRun() });
    const run = await ended;
    expect(performance.now() - asked).toBeLessThan(10_000);
    expect(run.phase).toBe(Run_Phase.CANCELED);
    expect(run.residue).toEqual([expect.stringMatching(/^reboot: the machine may go down later, .* stay off/)]);
    expect((await bmc.told()).slice(before)).toEqual(["shutdown 1"]);
  });
});

const WORKFLOW = {
  id: "ubuntu",
  name: "Ubuntu",
  description: "",
  osFamily: "linux",
  architecture: "x86_64",
  bootMode: "any",
  boot: { method: "kernel", kernel_url: "/files/vmlinuz", cmdline: "" },
  steps: [],
  nextState: "installed",
} as const;

/** What its firmware does: the token of the boot, once there is something to install. */
async function bootAsOrdered(deps: ServiceDeps, mac: string): Promise<string | undefined> {
  const rules = { autoRegister: false, defaultGroupId: null, eraser: null };
  const script = await bootNode(deps, rules, { mac, hardware: {}, server: "http://192.0.2.1", address: null });
  return /millwright\.token=(\S+)/.exec(script)?.[1];
}

/** What goes from the chassis to the machine: power that goes off and on, by the switch at the rack. */
const wiresTo = (url: string): string => `
const [, , name, value] = process.argv;
const powers = { "power 0": ["off"], "power 1": ["on"], "shutdown 1": ["off"], "reset 1": ["off", "on"] };
for (const power of powers[name + " " + value] ?? [])
  await fetch(${JSON.stringify(url)}, { method: "POST", body: JSON.stringify({ power }) });
`;
