import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Simulator, startSimulator } from "../../../simulator/simulator.ts";
import { createKubernetesProvider } from "../../../src/providers/kubernetes/kubernetes-provider.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { getKubeconfigs } from "../../../src/store/catalog/clusters.ts";
import { getMachineBmcCredentials, getMachineSshCredentials } from "../../../src/store/machine/credentials.ts";
import { listMachines } from "../../../src/store/machine/machines.ts";
import { wireClusterGate } from "../../../src/wiring/cluster-gate.ts";
import { recordSimulatedMachines } from "../../../src/wiring/dev/dev-machines.ts";
import { tester } from "../../support/datacentre.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type MachinesUnderTest, startMachines } from "./machines-under-test.ts";

let site: MachinesUnderTest;
let simulator: Simulator;
let directory: string;
let deps: ServiceDeps;
const kubernetes = createKubernetesProvider();
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "millwright-dev-machines-"));
  site = await startMachines();
  deps = { ...site.deps, clusterGate: wireClusterGate(kubernetes.can.clusterAccess) };
  simulator = await startSimulator({ dataDir: directory, speed: 50, seed: 1, site: "racks=1" });
});
afterAll(async () => {
  kubernetes.close();
  await simulator.close();
  await site.close();
  rmSync(directory, { recursive: true, force: true });
});

test("the simulated machines are on record with all that runs on them need", async () => {
  expect(await recordSimulatedMachines(deps, tester, simulator.controlUrl)).toBe(18);
  const { machines } = await site.machines.listMachines({ filter: "rack=rack-1" });
  expect(machines.map(({ machineId }) => machineId)).toContain("m-rack1-18");
  expect(machines).toHaveLength(18);
  const ids = machines.map(({ machineId }) => machineId);
  const { db, secrets } = site.deps;
  for (const found of await getMachineBmcCredentials(db, secrets, await listMachines(db, { ids })))
    expect(found).toEqual({ username: expect.stringMatching(/./), password: expect.stringMatching(/./) });
  for (const found of await getMachineSshCredentials(db, secrets, await listMachines(db, { ids })))
    expect(found).toEqual({ username: "root", privateKey: expect.stringContaining("PRIVATE KEY") });
  expect((await site.clusters.listClusters({})).clusters.map(({ name }) => name)).toContain("default-cluster");
  const kubeconfigs = await getKubeconfigs(db, secrets, ["default-cluster"]);
  expect(kubeconfigs.get("default-cluster")).toContain("server");
  expect((await site.images.listImages({})).images.map(({ name }) => name)).toContain("ubuntu:22.04-k8s");
});

test("a second start leaves what people changed as it is", async () => {
  await recordSimulatedMachines(deps, tester, simulator.controlUrl);
  await site.machines.updateMachine({ machine: { machineId: "m-rack1-01", labels: { mine: "yes" } } });
  expect(await recordSimulatedMachines(deps, tester, simulator.controlUrl)).toBe(18);
  expect((await site.machines.getMachine({ machineId: "m-rack1-01" })).labels).toEqual({ mine: "yes" });
});

test("a simulator without machines has none", async () => {
  const bare = createServer((_, answer) => answer.writeHead(404).end()).listen(0, "127.0.0.1");
  await once(bare, "listening");
  try {
    const { port } = bare.address() as AddressInfo;
    expect(await recordSimulatedMachines(deps, tester, `http://127.0.0.1:${port}`)).toBe(0);
  } finally {
    bare.close();
  }
});
