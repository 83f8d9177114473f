import { expect, test } from "vitest";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import { type MachineSite, type SimulatedMachine, startMachineSite } from "../../support/machine-site.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let site: MachineSite;
beforeAll(async () => {
  site = await startMachineSite({ speed: 400 });
});
afterAll(() => site.stop());

function machineAt(index: number): SimulatedMachine {
  const machine = site.machines[index];
  if (!machine) throw new Error(`the site has no machine ${index}`);
  return machine;
}
const requestsOf = async ({ machine_id }: SimulatedMachine): Promise<number> =>
  (await site.control<{ requests: number }>("GET", `/devices/${machine_id}`)).requests;

test("vitals say whose the BMC is and how the machine is, in two requests once the way is known", async () => {
  const machine = machineAt(0);
  const read = () => site.can.vitals.readVitals(site.bmc(machine), aCall());
  expect(await read()).toEqual({
    serial: machine.serial,
    systemUuid: machine.system_uuid,
    power: "on",
    health: "ok",
    ailments: [],
    certificateFingerprint: expect.stringMatching(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/),
  });
  const before = await requestsOf(machine);
  await read();
  expect((await requestsOf(machine)) - before).toBe(2);
});

test("vitals name each sensor that is not well, the worst deciding about the whole", async () => {
  const machine = machineAt(1);
  const ail = (sensor: string, health: string | null) =>
    site.control("PUT", `/devices/${machine.machine_id}/health`, { sensor, health });
  await ail("fan_speed", "Critical");
  await ail("inlet_temperature", "Warning");
  expect(await site.can.vitals.readVitals(site.bmc(machine), aCall())).toMatchObject({
    health: "critical",
    ailments: [
      { name: "Inlet temperature", health: "warning" },
      { name: "Fan speed", health: "critical" },
    ],
  });
  await ail("fan_speed", null);
  await ail("inlet_temperature", null);
  expect(await site.can.vitals.readVitals(site.bmc(machine), aCall())).toMatchObject({ health: "ok", ailments: [] });
});

test("a cluster's nodes are listed with what tells whose they are, and with what still runs on them", async () => {
  const [cluster] = site.clusters;
  const machine = machineAt(2);
  if (!cluster) throw new Error("the site has no cluster");
  await site.control("POST", `/devices/${machine.machine_id}/join`, { cluster: cluster.name });
  const find = async () =>
    (await site.can.nodes.listNodes(cluster, aCall())).find(({ name }) => name === machine.machine_id);
  const listed = await find();
  expect(listed).toMatchObject({ ready: true, unschedulable: false, systemUuid: machine.system_uuid });
  expect(listed?.addresses).toEqual([machine.ssh_endpoint.split(":")[0]]);
  const identity = { systemUuid: machine.system_uuid, serial: null, addresses: [] };

  await site.can.cluster.setSchedulable(cluster, machine.machine_id, false, aCall());
  expect(await find()).toMatchObject({ unschedulable: true });
  expect(await site.can.cluster.findNode(cluster, identity, aCall())).toMatchObject({ cordonedByUs: true });
  const workloads = await site.can.nodes.listWorkloads(cluster, machine.machine_id, aCall());
  expect(workloads).toHaveLength(3);
  expect(workloads.every((name) => name.startsWith("default/"))).toBe(true);
  // Reading moves nothing away.
  expect(await site.can.nodes.listWorkloads(cluster, machine.machine_id, aCall())).toEqual(workloads);

  await site.can.cluster.setSchedulable(cluster, machine.machine_id, true, aCall());
  expect(await site.can.cluster.findNode(cluster, identity, aCall())).toMatchObject({
    unschedulable: false,
    cordonedByUs: false,
  });
});
