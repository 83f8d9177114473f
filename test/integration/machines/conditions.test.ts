import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { MachineStatus_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import type { ClusterTarget } from "../../../src/capabilities/cluster-target.ts";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import { fingerprintOf } from "../../../src/capabilities/host-key.ts";
import { hours } from "../../../src/kernel/time/duration.ts";
import { createKubernetesClient } from "../../../src/providers/kubernetes/client.ts";
import { targetOfKubeconfig } from "../../../src/providers/kubernetes/kubeconfig.ts";
import { createKubernetesProvider } from "../../../src/providers/kubernetes/kubernetes-provider.ts";
import { insertHealthReport } from "../../../src/services/device/health-reports.ts";
import { type ConditionBench, openConditionBench } from "../../support/condition-bench.ts";
import { eventually } from "../../support/eventually.ts";
import type { MachineTruth } from "../../support/machine-site.ts";
import { type RunBench, startRunBench } from "../../support/run-bench.ts";

/**
 * Each condition against the simulator, with the interval that is the default: what changes there shows within 30 s, and what does
 * not change there does not change here.
 */
vi.setConfig({ maxConcurrency: 20 }); // each test does little but wait

const directory = mkdtempSync(join(tmpdir(), "millwright-conditions-"));
let bench: RunBench;
let looks: ConditionBench;
let cluster: ClusterTarget;
let unused: string[];
const kubernetes = createKubernetesProvider();

beforeAll(async () => {
  const site = join(directory, "site.yaml");
  writeFileSync(site, "racks:\n  - machines: 20\n  - machines: 2\n    behind_bastion: true\n");
  bench = await startRunBench({ speed: 100, site });
  looks = openConditionBench(bench);
  unused = bench.simulated.map(({ machine_id }) => machine_id);
  const [known] = await bench.control<{ name: string; kubeconfig: string }[]>("GET", "/clusters");
  if (!known) throw new Error("the simulator has no cluster");
  cluster = targetOfKubeconfig(known.name, known.kubeconfig);
  looks.start();
  for (const { machine_id } of bench.simulated) await looks.becomes(machine_id, "BMCReachable", true);
}, 90_000);
afterAll(async () => {
  await looks.close();
  await bench.close();
  kubernetes.close();
  rmSync(directory, { recursive: true, force: true });
});

/** One that no test has had yet: what a first try has done to its machine does not meet the second. */
function takeMachine(rack = "rack1"): string {
  const at = unused.findIndex((id) => id.startsWith(`m-${rack}-`));
  const [id] = unused.splice(at, at < 0 ? 0 : 1);
  if (id === undefined) throw new Error(`no machine is left in ${rack}`);
  return id;
}

const machineOf = async (machineId: string) => bench.machines.getMachine({ machineId });
const phaseOf = async (id: string) => MachineStatus_Phase[(await machineOf(id)).status?.phase ?? 0];
const faultOn = async (device: string, fault: object, rest: object = {}): Promise<() => Promise<void>> => {
  const { id } = await bench.control<{ id: string }>("POST", "/faults", { device, fault, ...rest });
  return () => bench.control("DELETE", `/faults/${id}`);
};
const join_ = (id: string) => bench.control("POST", `/devices/${id}/join`, { cluster: cluster.name });

/** Two more looks find the same; nothing was written, so that the time of the transition is what it was. */
async function staysAsItIs(id: string, type: string): Promise<void> {
  const before = await looks.condition(id, type);
  await looks.looked(id, 2);
  expect(await looks.condition(id, type)).toEqual(before);
}

describe.concurrent("shows within 30 s, and not before:", { timeout: 180_000 }, () => {
  test("Reachable follows the machine's SSH server", async () => {
    const id = takeMachine();
    await looks.becomes(id, "Reachable", true, "SshAnswers");
    await staysAsItIs(id, "Reachable");
    const mend = await faultOn(id, { type: "ssh_hang" });
    const lost = await looks.becomes(id, "Reachable", false, "NoAnswer");
    expect(lost.message).toMatch(/did not answer/);
    await mend();
    await looks.becomes(id, "Reachable", true);
  });

  test("Reachable is checked through the jump host where there is one", async () => {
    const id = takeMachine("rack2");
    await looks.becomes(id, "Reachable", true, "SshAnswers");
    await bench.control("POST", `/devices/${id}/power`, { power: "off" });
    await looks.becomes(id, "Reachable", false, "NoAnswer");
  });

  test("one lost connection is no loss of the machine", async () => {
    const id = takeMachine();
    const { lastTransition } = await looks.becomes(id, "Reachable", true);
    await faultOn(id, { type: "ssh_refused" }, { times: 1 });
    await looks.looked(id, 3);
    expect(await looks.condition(id, "Reachable")).toMatchObject({ status: true, lastTransition });
  });

  test("BMCReachable follows the BMC", async () => {
    const id = takeMachine();
    await staysAsItIs(id, "BMCReachable");
    const mend = await faultOn(id, { type: "hang" });
    await looks.becomes(id, "BMCReachable", false, "NoAnswer");
    await mend();
    await looks.becomes(id, "BMCReachable", true, "BmcAnswers");
  });

  test("BMCReachable needs an account that is accepted", async () => {
    const id = takeMachine();
    await faultOn(id, { type: "wrong_credentials" });
    await looks.becomes(id, "BMCReachable", false, "CredentialsRefused");
  });

  test("BMCReachable needs the certificate that was seen first, until an operator accepts the one that is shown", async () => {
    const id = takeMachine();
    const { db } = bench.deps;
    const pinned = async () => {
      const [row] = await db.query<{ pin: string | null }>(
        "select facts ->> 'certificateFingerprint' as pin from machines where id = $1",
        [id],
      );
      return row?.pin ?? null;
    };
    await eventually(async () => (await pinned()) !== null, { what: "a certificate is pinned", within: 30_000 });
    const shown = await pinned();
    // Simulated BMCs keep theirs, so that it is the pinned one which becomes another.
    const other = Array(32).fill("AA").join(":");
    await db.query(
      "update machines set basis = basis + 1, facts = facts || jsonb_build_object('certificateFingerprint', $2::text) where id = $1",
      [id, other],
    );
    const { message } = await looks.becomes(id, "BMCReachable", false, "IdentityNotProven");
    expect(message).toContain(`fingerprint ${shown}, but ${other} was pinned`);
    const accept = (fingerprint: string) => bench.lifecycle.acceptMachineCertificate({ machineId: id, fingerprint });
    const refused = await accept("BB".repeat(32)).catch((error: unknown) => ConnectError.from(error));
    expect(refused).toMatchObject({
      code: Code.FailedPrecondition,
      rawMessage: expect.stringContaining(`shows ${shown}`),
    });
    await accept(shown?.toLowerCase() ?? "");
    expect(await pinned()).toBe(shown);
    await looks.becomes(id, "BMCReachable", true);
    const unseen = await accept("BB".repeat(32)).catch((error: unknown) => ConnectError.from(error));
    expect(unseen).toMatchObject({ code: Code.FailedPrecondition, rawMessage: expect.stringContaining("not seen") });
    expect(await pinned()).toBe(shown);
    await bench.changeSpec(id, { bmcTlsTrust: "off" });
    const unpinned = await accept(shown ?? "").catch((error: unknown) => ConnectError.from(error));
    expect(unpinned).toMatchObject({ code: Code.FailedPrecondition, rawMessage: expect.stringContaining("is off") });
  });

  test("InCustomerCluster and Drained follow the cluster's node", async () => {
    const id = takeMachine();
    await looks.becomes(id, "InCustomerCluster", false, "NotJoined");
    await staysAsItIs(id, "InCustomerCluster");
    await join_(id);
    const joined = await looks.becomes(id, "InCustomerCluster", true, "NodeReady");
    expect(joined.message).toContain(`node ${id} of ${cluster.name}`);
    await looks.becomes(id, "Drained", false, "NotCordoned");
    await staysAsItIs(id, "Drained");
    await kubernetes.can.cluster.setSchedulable(cluster, id, false, aCall());
    expect((await looks.becomes(id, "Drained", false, "PodsRemain")).message).toMatch(/^3 pods remain: /);
    await kubernetes.can.cluster.drain(cluster, id, aCall(), { barePods: false, localData: false });
    await looks.becomes(id, "Drained", true, "NodeDrained");
    const client = createKubernetesClient();
    await client.send(cluster, { method: "DELETE", path: `/api/v1/nodes/${id}` }, aCall());
    client.close();
    await looks.becomes(id, "InCustomerCluster", false, "NotJoined");
  });

  test("Degraded names the sensor that is not well", async () => {
    const id = takeMachine();
    await looks.becomes(id, "Degraded", false, "Healthy");
    await staysAsItIs(id, "Degraded");
    await bench.control("PUT", `/devices/${id}/health`, { sensor: "fan_speed", health: "Critical" });
    const { message } = await looks.becomes(id, "Degraded", true, "PartNotWell");
    expect(message).toBe("Fan speed is critical");
    expect((await machineOf(id)).status?.banners).toEqual(["Degraded"]);
    await bench.control("PUT", `/devices/${id}/health`, { sensor: "fan_speed", health: null });
    await looks.becomes(id, "Degraded", false);
  });

  test("Degraded names an open alert, and ends when the alert has expired", async () => {
    const id = takeMachine();
    await looks.becomes(id, "Degraded", false, "Healthy");
    const caller = { name: "monitor", roles: [], address: null };
    const alert = { id: "Leak", target: null, inAlertSince: null, message: "wet", tenantMessage: null };
    await insertHealthReport(bench.deps, caller, {
      device: { kind: "machine", id, field: "id" },
      report: {
        source: "leak",
        observedAt: null,
        triggeredBy: null,
        successes: [],
        alerts: [{ ...alert, classifications: [] }],
      },
      mode: "merge",
      expiresAfter: hours(1),
    });
    expect(await looks.condition(id, "Degraded")).toMatchObject({ status: true, reason: "OpenAlert" });
    await looks.looked(id, 2);
    const open = { status: true, reason: "OpenAlert", message: "leak: Leak: wet" };
    expect(await looks.condition(id, "Degraded")).toMatchObject(open);
    await bench.deps.db.execute("update health_reports set expires_at = now() where id = $1", [id]);
    await looks.becomes(id, "Degraded", false, "Healthy");
  });

  test("NeedsIntervention is raised by a BMC that answers for another machine, and ends when it is the right one", async () => {
    const id = takeMachine();
    await looks.becomes(id, "NeedsIntervention", false, "NothingFound");
    await staysAsItIs(id, "NeedsIntervention");
    const mend = await faultOn(id, { type: "wrong_serial", serial: "OTHER-1" });
    const { message } = await looks.becomes(id, "NeedsIntervention", true, "WrongSerial");
    const serial = bench.simulated.find(({ machine_id }) => machine_id === id)?.serial ?? "?";
    expect(message).toContain("OTHER-1");
    expect(message).toContain(serial);
    await mend();
    await looks.becomes(id, "NeedsIntervention", false, "IdentityMatches");
  });

  test("another host key takes Reachable and Provisioned back and calls for somebody, until the pinned one shows again", async () => {
    const id = takeMachine();
    const { runId } = await bench.runs.startRun({ machineId: id, requestId: "provision", planId: "plan/repave-join" });
    await bench.ended(runId);
    const provisioned = await looks.becomes(id, "Provisioned", true);
    await looks.looked(id, 2);
    expect(await looks.condition(id, "Provisioned")).toEqual(provisioned);
    const mend = await faultOn(id, { type: "wrong_host_key" });
    await looks.becomes(id, "Provisioned", false, "HostKeyChanged");
    await looks.becomes(id, "NeedsIntervention", true, "HostKeyChanged");
    await looks.becomes(id, "Reachable", false, "HostKeyChanged");
    await mend();
    await looks.becomes(id, "Provisioned", true, "HostKeyProven");
    await looks.becomes(id, "NeedsIntervention", false, "HostKeyMatches");
    await looks.becomes(id, "Reachable", true);
  });

  test("where no key is pinned the first that is seen is: another is not believed, by looks or runs, until it is accepted", async () => {
    const id = takeMachine();
    await bench.changeSpec(id, { sshHostKey: "" });
    const keyOf = async () => {
      const { status } = await machineOf(id);
      return [status?.sshHostKey, status?.sshHostKeyFrom];
    };
    const { os } = await bench.control<MachineTruth>("GET", `/devices/${id}`);
    await eventually(async () => (await keyOf())[0] !== "", { what: "a host key is kept" });
    expect(await keyOf()).toEqual([os.host_key, "first_seen"]);
    const mend = await faultOn(id, { type: "wrong_host_key" });
    const { message } = await looks.becomes(id, "Reachable", false, "HostKeyChanged");
    await looks.becomes(id, "NeedsIntervention", true, "HostKeyChanged");
    const planId = `plan-on-${id}`;
    await bench.plans.createPlan({
      plan: { planId, steps: [{ name: "net", kind: { case: "net", value: { params: { action: "reconfigure" } } } }] },
    });
    const { runId } = await bench.runs.startRun({ machineId: id, requestId: "stranger", planId });
    const { error } = await bench.ended(runId);
    const [, shown = "", pinned = ""] = /shows host key (SHA256:\S+), but (SHA256:\S+) is pinned/.exec(message) ?? [];
    expect(error?.message).toContain(`shows host key ${shown}, but ${pinned} is pinned`);
    expect(pinned).toBe(fingerprintOf(os.host_key));
    expect(message).toContain(`millwright machine update ${id} --ssh-host-key ${shown}`);
    expect(await keyOf()).toEqual([os.host_key, "first_seen"]);
    await bench.changeSpec(id, { sshHostKey: shown });
    await looks.becomes(id, "Reachable", true, "SshAnswers");
    expect(await keyOf()).toEqual([shown, "spec"]);
    await mend();
    await looks.becomes(id, "Reachable", false, "HostKeyChanged");
  });

  test("a failed run's call for somebody is not ended by looks that find all well", async () => {
    const id = takeMachine();
    await looks.becomes(id, "NeedsIntervention", false);
    const reset = { method: "POST", path: "/redfish/v1/Systems/1/Actions" };
    await faultOn(id, { type: "status", status: 400 }, reset);
    const { runId } = await bench.runs.startRun({ machineId: id, requestId: "fails", planId: "plan/reboot" });
    await bench.ended(runId);
    expect(await looks.condition(id, "NeedsIntervention")).toMatchObject({ status: true, reason: "RunFailed" });
    await looks.looked(id, 2);
    expect(await looks.condition(id, "NeedsIntervention")).toMatchObject({ status: true, reason: "RunFailed" });
  });

  test("a machine from the factory is inspected and becomes READY, with what was read of it", async () => {
    const id = takeMachine();
    await eventually(async () => (await phaseOf(id)) === "READY", { what: `${id} is READY` });
    const { status } = await machineOf(id);
    const truth = bench.simulated.find(({ machine_id }) => machine_id === id);
    expect(status?.inventory).toMatchObject({ serial: truth?.serial, vendor: "Generic", bmcFirmwareVersion: "1.09.2" });
    const [row] = await bench.db.query<{ facts: object }>("select facts from machines where id = $1", [id]);
    expect(row?.facts).toMatchObject({ systemUuid: truth?.system_uuid, macs: truth?.mac_addresses });
  });

  test("a retired machine is not checked any more", async () => {
    const id = takeMachine();
    await bench.lifecycle.retireMachine({ machineId: id, comment: "" });
    await looks.looked(takeMachine(), 2);
    expect(await bench.db.query("select 1 from condition_looks where machine_id = $1", [id])).toEqual([]);
  });

  test("a fleet at rest is checked and not written", async () => {
    const id = takeMachine();
    await looks.becomes(id, "Degraded", false);
    await looks.looked(id, 1);
    const { version } = await machineOf(id);
    await looks.looked(id, 3);
    expect((await machineOf(id)).version).toBe(version);
  });
});
