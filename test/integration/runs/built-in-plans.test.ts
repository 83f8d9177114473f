import { describe, expect, test } from "vitest";
import { MachineStatus_Phase, type Run, Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { eventually } from "../../support/eventually.ts";
import { type RunBench, startRunBench } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** Every built-in plan on machines of a simulated site: of rack 1, in no cluster, and of rack 2, nodes of default-cluster already. */
let bench: RunBench;
const unused = new Map<string, string[]>();
beforeAll(async () => {
  bench = await startRunBench({ site: "racks=2,joined=1" });
  for (const rack of ["rack1", "rack2"])
    unused.set(
      rack,
      bench.simulated.map(({ machine_id }) => machine_id).filter((id) => id.includes(rack)),
    );
}, 60_000);
afterAll(() => bench.close());

async function machine(rack: "rack1" | "rack2"): Promise<string> {
  const id = unused.get(rack)?.shift();
  if (id === undefined) throw new Error("there is no machine left");
  await bench.lifecycle.acceptMachine({ machineId: id });
  return id;
}

type Params = Readonly<Record<string, string>>;

async function carryOut(machineId: string, what: { type?: string; planId?: string; params?: Params }): Promise<Run> {
  const { runId } = await bench.runs.startRun({ requestId: "r", machineId, ...what });
  return bench.ended(runId, 60_000);
}

const textOf = async ({ runId }: Run) =>
  (await bench.logs(runId)).map(({ data }) => Buffer.from(data).toString()).join("");

async function expectSucceeded(run: Run): Promise<string> {
  const said = await textOf(run);
  expect(run.phase, `${run.error?.message}\n${said}`).toBe(Run_Phase.SUCCEEDED);
  return said;
}

const phaseOf = async (machineId: string) => (await bench.machines.getMachine({ machineId })).status?.phase;
interface Seen {
  readonly power: string;
  readonly locator_lit: boolean;
  readonly answers_at: readonly string[];
  readonly os: { readonly image: string; readonly boot_id: string };
  readonly kubernetes: { readonly cluster: string | null };
  readonly effects: Readonly<Record<string, number>>;
}
const seen = (id: string) => bench.control<Seen>("GET", `/devices/${id}`);

interface Node {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly unschedulable?: boolean };
  readonly status: { readonly nodeInfo: { readonly kubeletVersion: string; readonly bootID: string } };
}
async function nodeOf(id: string): Promise<Node> {
  const [cluster] = await bench.control<{ api_url: string; token: string }[]>("GET", "/clusters");
  const answer = await fetch(`${cluster?.api_url}/api/v1/nodes/${id}`, {
    headers: { authorization: `Bearer ${cluster?.token}` },
  });
  return (await answer.json()) as Node;
}

async function patchNode(id: string, patch: object): Promise<void> {
  const [cluster] = await bench.control<{ api_url: string; token: string }[]>("GET", "/clusters");
  const answer = await fetch(`${cluster?.api_url}/api/v1/nodes/${id}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${cluster?.token}`, "content-type": "application/merge-patch+json" },
    body: JSON.stringify(patch),
  });
  expect(answer.status).toBe(200);
}

/** What a drain of the machine's node has to move away, by namespace and name. */
async function workOn(id: string): Promise<string[]> {
  const [cluster] = await bench.control<{ api_url: string; token: string }[]>("GET", "/clusters");
  const answer = await fetch(`${cluster?.api_url}/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName=${id}`, {
    headers: { authorization: `Bearer ${cluster?.token}` },
  });
  const { items } = (await answer.json()) as { items: { metadata: { namespace: string; name: string } }[] };
  return items.map(({ metadata: { namespace, name } }) => `${namespace}/${name}`);
}

describe("on a machine in no cluster", () => {
  test("REBOOT, REPAVE and NET_RECONFIG succeed, each on its own", async () => {
    const ids = await Promise.all([machine("rack1"), machine("rack1"), machine("rack1")]);
    const types = ["REBOOT", "REPAVE", "NET_RECONFIG"];
    const runs = await Promise.all(ids.map((id, index) => carryOut(id, { type: types[index] ?? "" })));
    for (const run of runs) await expectSucceeded(run);
    const { READY, IN_SERVICE } = MachineStatus_Phase;
    expect(await Promise.all(ids.map(phaseOf))).toEqual([READY, IN_SERVICE, READY]);
    expect((await seen(ids[2] ?? "")).effects).toMatchObject({ network_changes: 1, boots: 0 });
  });

  test("REBOOT and REPAVE succeed by force where the system hangs, and does not hear that it is to go down", async () => {
    const ids = await Promise.all([machine("rack1"), machine("rack1")]);
    for (const id of ids) await bench.control("POST", `/devices/${id}/crash`);
    const params = { force: "true" };
    const types = ["REBOOT", "REPAVE"];
    const runs = await Promise.all(ids.map((id, index) => carryOut(id, { type: types[index] ?? "", params })));
    for (const run of runs) expect(await expectSucceeded(run)).toContain("the BMC accepted a forced restart");
    const { READY, IN_SERVICE } = MachineStatus_Phase;
    expect(await Promise.all(ids.map(phaseOf))).toEqual([READY, IN_SERVICE]);
  });

  test("REBOOT and REPAVE reset a system that hangs by its power, where the BMC does not tell one boot from the next", async () => {
    const ids = await Promise.all([machine("rack1"), machine("rack1")]);
    const [hung = "", replaced = ""] = ids;
    await bench.takeOn(hung, "worst");
    // That an override is kept for good is another matter: it ends by time, which does not run faster for us.
    const profile = ["no_last_reset_time", "no_boot_progress", "late_power", "lone_disabled_refused"];
    await bench.takeOn(replaced, profile);
    for (const id of ids) await bench.control("POST", `/devices/${id}/crash`);
    const [rebooted, repaved] = await Promise.all([
      carryOut(hung, { type: "REBOOT", params: { force: "true" } }),
      carryOut(replaced, { type: "REPAVE" }),
    ]);
    expect(await expectSucceeded(rebooted)).toContain("its BMC reported it off, and then on");
    expect((await seen(hung)).effects).toMatchObject({ power_off_commands: 1, power_on_commands: 1, resets: 2 });
    expect(await expectSucceeded(repaved)).toContain("its BMC reported it off, and then on");
    expect((await seen(replaced)).effects).toMatchObject({ installs: 1 });
  });

  test("RMA by force does not ask a system that is dead", async () => {
    const id = await machine("rack1");
    await bench.control("POST", `/devices/${id}/crash`);
    const said = await expectSucceeded(await carryOut(id, { type: "RMA", params: { force: "true" } }));
    expect(said).toContain("not checked, by force=true");
    expect([await phaseOf(id), (await seen(id)).power]).toEqual([MachineStatus_Phase.RMA, "off"]);
  });

  test("RMA turns it off and puts it into RMA, with its locator lit until it is back", async () => {
    const id = await machine("rack1");
    await expectSucceeded(await carryOut(id, { type: "RMA" }));
    expect([await phaseOf(id), (await seen(id)).power]).toEqual([MachineStatus_Phase.RMA, "off"]);
    expect((await seen(id)).locator_lit).toBe(true);
    await bench.lifecycle.returnMachine({ machineId: id });
    await eventually(async () => !(await seen(id)).locator_lit, { what: `the locator of ${id} is dark` });
  });

  test("the specification's sample plan installs ubuntu-22.04 and joins cluster-a", async () => {
    const id = await machine("rack1");
    await expectSucceeded(await carryOut(id, { planId: "plan-repave-ubuntu-2204-v1" }));
    expect(await seen(id)).toMatchObject({ os: { image: "ubuntu-22.04" }, kubernetes: { cluster: "cluster-a" } });
    expect(await phaseOf(id)).toBe(MachineStatus_Phase.IN_SERVICE);
  });

  test("REPAVE replaces a system that shows another host key than the pinned one, and REBOOT leaves it alone", async () => {
    const id = await machine("rack1");
    const other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ+9C3XQ0gDXZg5iuIIdaTTlZ0L59WskL9PyoC0BpClv";
    // As after an installation that was cut short: another key is the one that was proved.
    await bench.db.execute("update machines set facts = facts || $2 where id = $1", [id, { sshHostKey: other }]);
    const { runId } = await bench.runs.startRun({ requestId: "reboot", machineId: id, type: "REBOOT" });
    const refused = await bench.ended(runId);
    expect(refused.error?.message).toContain("shows host key");
    expect((await seen(id)).effects.resets ?? 0).toBe(0);
    await expectSucceeded(await carryOut(id, { type: "REPAVE" }));
    const { os } = await seen(id);
    expect(os.image).toBe("ubuntu:22.04-k8s");
    expect(await phaseOf(id)).toBe(MachineStatus_Phase.IN_SERVICE);
  });
});

test("the plans do their work as an account that is not root, which uses sudo", async () => {
  const id = await machine("rack1");
  const simulated = bench.simulated.find(({ machine_id }) => machine_id === id);
  await bench.lifecycle.setMachineCredentials({
    machineId: id,
    sshUsername: "ubuntu",
    sshPrivateKey: simulated?.ssh_private_key ?? "",
  });
  await expectSucceeded(await carryOut(id, { type: "REPAVE" }));
  const { runId } = await bench.runs.startRun({ requestId: "upgrade", machineId: id, type: "UPGRADE" });
  const said = await expectSucceeded(await bench.ended(runId, 60_000));
  expect(said).toContain("from Kubernetes v1.31.4 to 1.33.0");
});

describe("on a node of a cluster", () => {
  test("UPGRADE empties the node, brings the new kubelet into the cluster and gives the node back", async () => {
    const id = await machine("rack2");
    expect((await nodeOf(id)).status.nodeInfo.kubeletVersion).toBe("v1.31.4");
    const said = await expectSucceeded(await carryOut(id, { type: "UPGRADE" }));
    expect(said).toMatch(
      /cordoned[\s\S]*evicting pod[\s\S]*drained[\s\S]*from Kubernetes v1\.31\.4 to 1\.33\.0[\s\S]*uncordoned/,
    );
    expect(said).toContain("with the kubelet v1.33.0");
    const node = await nodeOf(id);
    expect(node.status.nodeInfo).toMatchObject({ kubeletVersion: "v1.33.0", bootID: (await seen(id)).os.boot_id });
    expect(node.spec.unschedulable).toBeUndefined();
    expect((await seen(id)).effects).toMatchObject({ package_upgrades: 1, boots: 1 });
  });

  test("REPAVE after an UPGRADE that was cut short gives the node back that the UPGRADE had cordoned", async () => {
    const id = await machine("rack2");
    const rule = { device: id, method: "POST", path: "/redfish/v1/Systems", fault: { type: "status", status: 400 } };
    const { id: fault } = await bench.control<{ id: string }>("POST", "/faults", rule);
    try {
      const upgrade = await carryOut(id, { type: "UPGRADE" });
      expect(upgrade.phase, await textOf(upgrade)).toBe(Run_Phase.FAILED);
    } finally {
      await bench.control("DELETE", `/faults/${fault}`);
    }
    expect((await nodeOf(id)).spec.unschedulable).toBe(true);
    const { runId } = await bench.runs.startRun({ requestId: "repave", machineId: id, type: "REPAVE" });
    await expectSucceeded(await bench.ended(runId, 60_000));
    expect(await phaseOf(id)).toBe(MachineStatus_Phase.IN_SERVICE);
    await eventually(async () => (await nodeOf(id)).spec.unschedulable === undefined, {
      what: `${id} takes pods again`,
      seen: async () => JSON.stringify(await nodeOf(id)),
    });
  });

  test("UPGRADE leaves a node cordoned that somebody else had, and says so", async () => {
    const id = await machine("rack2");
    await patchNode(id, { spec: { unschedulable: true } });
    const said = await expectSucceeded(await carryOut(id, { type: "UPGRADE" }));
    expect(said).toContain(`node ${id} stays cordoned: Millwright did not do it`);
    expect(said).toContain("it is cordoned, though not by Millwright");
    expect((await nodeOf(id)).spec.unschedulable).toBe(true);
  });

  test("RMA succeeds once the machine is in maintenance, which cordons and drains its node", async () => {
    const id = await machine("rack2");
    await bench.lifecycle.enterMaintenance({ machineId: id });
    await eventually(async () => (await workOn(id)).length === 0, { what: `${id} is drained` });
    const said = await expectSucceeded(await carryOut(id, { type: "RMA" }));
    expect(said).toContain("nothing is left on it but daemons");
    expect([await phaseOf(id), (await seen(id)).power]).toEqual([MachineStatus_Phase.RMA, "off"]);
  });

  test.each(["ideal", "worst"])(
    "RMA of a dead machine with a BMC that is %s asks its cluster, not its system",
    async (profile) => {
      const id = await machine("rack2");
      await bench.takeOn(id, profile);
      await bench.lifecycle.enterMaintenance({ machineId: id });
      await eventually(async () => (await workOn(id)).length === 0, { what: `${id} is drained` });
      await bench.control("POST", `/devices/${id}/crash`);
      const said = await expectSucceeded(await carryOut(id, { type: "RMA" }));
      expect(said).toContain("nothing is left on it but daemons");
      expect([await phaseOf(id), (await seen(id)).power]).toEqual([MachineStatus_Phase.RMA, "off"]);
    },
  );

  test("RMA is refused by the cluster while pods that may not go are on its node, each by its name", async () => {
    const id = await machine("rack2");
    const pods = await workOn(id);
    const rule = {
      device: "default-cluster",
      method: "POST",
      path: "/api/v1/namespaces/*/eviction",
      fault: { type: "status", status: 429 },
    };
    const { id: fault } = await bench.control<{ id: string }>("POST", "/faults", rule);
    try {
      await bench.lifecycle.enterMaintenance({ machineId: id });
      const waits = async () => (await bench.machines.getMachine({ machineId: id })).status?.waitingFor ?? "";
      await eventually(async () => /a disruption budget keeps default\/web-/.test(await waits()), {
        what: `${id} says what keeps its pods`,
        seen: waits,
      });
      const run = await carryOut(id, { type: "RMA" });
      expect(run.phase).toBe(Run_Phase.FAILED);
      const said = await textOf(run);
      expect(pods).toHaveLength(3);
      for (const pod of pods) expect(said).toContain(pod);
      expect(said).not.toContain("kube-proxy");
      expect((await seen(id)).power).toBe("on");
    } finally {
      await bench.control("DELETE", `/faults/${fault}`);
    }
  });

  test("RMA is refused by the cluster while its node takes work, by force as well, and says what to do", async () => {
    const run = await carryOut(await machine("rack2"), { type: "RMA", params: { force: "true" } });
    expect(run).toMatchObject({
      phase: Run_Phase.FAILED,
      error: { message: expect.stringContaining("of default-cluster is not cordoned") },
    });
    expect(await textOf(run)).toContain("have it drained by 'machine enter-maintenance'");
  });
});

describe("a network change", () => {
  const to = (address: string, more: Params = {}): Params => ({
    netplan: `network: {version: 2, ethernets: {eth0: {dhcp4: false, addresses: [${address}/8]}}}`,
    ssh_address: address,
    rollback_seconds: "110",
    ...more,
  });

  test("to another address holds, and the next steps and runs reach the machine there", async () => {
    const id = await machine("rack1");
    const run = await carryOut(id, { type: "NET_RECONFIG", params: to("127.92.0.1") });
    expect(await expectSucceeded(run)).toContain("127.92.0.1/8");
    expect((await seen(id)).answers_at).toEqual(["127.92.0.1"]);
    expect((await bench.machines.getMachine({ machineId: id })).status?.sshMovedTo).toBe("127.92.0.1");
    await bench.runs.startRun({ requestId: "r2", machineId: id, type: "REBOOT" }).then(async ({ runId }) => {
      await expectSucceeded(await bench.ended(runId));
    });
    expect((await seen(id)).answers_at).toEqual(["127.92.0.1"]);
  });

  test("to where nobody answers FAILS the run, and the machine is back where it was", async () => {
    const id = await machine("rack1");
    await bench.plans.createPlan({
      plan: {
        planId: "plan-once",
        displayName: "One attempt",
        steps: [
          {
            name: "net",
            timeoutSeconds: 60,
            maxRetries: 0,
            kind: { case: "net", value: { params: { action: "reconfigure" } } },
          },
        ],
      },
    });
    const before = (await seen(id)).answers_at;
    const params = to("127.92.0.2", { ssh_address: "127.92.0.3", rollback_seconds: "5" });
    const run = await carryOut(id, { planId: "plan-once", params });
    expect(run).toMatchObject({ phase: Run_Phase.FAILED, error: { message: expect.stringContaining("reverted") } });
    expect(await seen(id)).toMatchObject({ answers_at: before, effects: { network_changes: 2 } });
    const { runId } = await bench.runs.startRun({ requestId: "r2", machineId: id, type: "NET_RECONFIG" });
    await expectSucceeded(await bench.ended(runId));
  });
});
