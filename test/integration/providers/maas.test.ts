import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Simulator, startSimulator } from "../../../simulator/simulator.ts";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import type { MaasTarget } from "../../../src/capabilities/fleet/maas.ts";
import { observedStateOf } from "../../../src/capabilities/fleet/maas-machine.ts";
import { createMaas } from "../../../src/providers/maas/maas-provider.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

const MAAS_STATUS = { ready: 4, deployed: 6, deploying: 9, failedDeployment: 11 } as const;

interface Told {
  readonly url: string;
  readonly api_key: string;
  readonly hosts: readonly Readonly<Record<string, string>>[];
}

let dataDir: string;
let simulator: Simulator;
let target: MaasTarget;
let hosts: Told["hosts"];
const gateway = createBmcGateway();
const maas = createMaas({ gateway });

const control = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
  const response = await fetch(simulator.controlUrl + path, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return (text === "" ? undefined : JSON.parse(text)) as T;
};

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "millwright-maas-"));
  simulator = await startSimulator({ dataDir, speed: 20_000, seed: 7, site: "racks=1,maas=9" });
  const told = await control<Told>("GET", "/maas");
  const { hostname, port, pathname } = new URL(told.url);
  hosts = told.hosts;
  target = {
    address: hostname,
    port: Number(port),
    scheme: "http",
    trust: { mode: "off" },
    path: pathname,
    apiKey: told.api_key,
  };
});
afterAll(async () => {
  maas.close();
  await simulator.close();
  rmSync(dataDir, { recursive: true, force: true });
});

let next = 0;
/** A server that nobody has asked MAAS about, and how MAAS gets to it. */
function aServer() {
  const host = hosts[next++];
  if (host === undefined) throw new Error("the site has too few servers");
  const { id = "", ipmi_address = "", ipmi_username = "", ipmi_password = "", mac = "" } = host;
  return { id, mac, power: { address: ipmi_address, username: ipmi_username, password: ipmi_password } };
}
const reached = (systemId: string, status: number) =>
  expect
    .poll(async () => (await maas.findMachine(target, systemId, aCall()))?.status, { timeout: 30_000, interval: 20 })
    .toBe(status);

async function readyServer() {
  const { id, power, mac } = aServer();
  const { systemId } = await maas.createMachine(target, { hostname: id, power }, aCall());
  await maas.commission(target, systemId, aCall());
  await reached(systemId, MAAS_STATUS.ready);
  return { id, mac, systemId };
}

test("tells what a region is, and whose key it was given", async () => {
  expect(await maas.readVersion(target, aCall())).toMatch(/^\d+\.\d+/);
  expect(await maas.readUser(target, aCall())).toEqual({ name: "admin", isAdmin: true });
  expect(await maas.readSetting(target, "hardware_sync_interval", aCall())).toBe("15m");
  expect(await maas.listImages(target, aCall())).toContain("ubuntu/jammy");
  expect(await maas.listRackControllers(target, aCall())).toEqual(["maas-rack"]);
  expect(await maas.listSubnets(target, aCall())).toContainEqual({ id: 1, cidr: "10.40.0.0/24", hasDhcp: true });
});

test("brings a server from nothing to Deployed and away again", async () => {
  const { id, mac, systemId } = await readyServer();
  const [found] = await maas.listMachines(target, { hostname: id }, aCall());
  expect(found).toMatchObject({ systemId, status: 4, power: "off", powerType: "ipmi", hardwareSync: null });
  expect(await maas.listMachines(target, { mac }, aCall())).toEqual([found]);
  const boss = found?.disks.find(({ model }) => model === "DELLBOSS VD");
  expect(boss?.id).not.toBe(found?.bootDiskId);
  await maas.setBootDisk(target, systemId, boss?.id ?? 0, aCall());
  expect(await maas.setFlatLayout(target, systemId, boss?.id ?? 0, aCall())).toMatchObject({ bootDiskId: boss?.id });

  const order = {
    userData: "#cloud-config\nhostname: ü\n",
    distroSeries: "jammy",
    hardwareSync: true,
    comment: "run 1",
  };
  expect(await maas.deploy(target, systemId, order, aCall())).toMatchObject({ status: MAAS_STATUS.deploying });
  await reached(systemId, MAAS_STATUS.deployed);
  const deployed = await maas.findMachine(target, systemId, aCall());
  expect(deployed).toMatchObject({
    power: "on",
    owner: "admin",
    distroSeries: "jammy",
    systemUuid: expect.any(String),
  });
  expect(deployed?.hardwareSync?.lastSyncAt?.getTime()).toBeGreaterThan(Date.now() - 60_000);
  const kept = await control<{ system_id: string; user_data: string }[]>("GET", "/maas/machines");
  const userData = kept.find(({ system_id }) => system_id === systemId)?.user_data ?? "";
  expect(Buffer.from(userData, "base64").toString()).toBe(order.userData);
  expect(await maas.readInstallLog(target, systemId, aCall())).toContain("Installation finished");

  await maas.release(target, systemId, { erase: true, comment: "run 2" }, aCall());
  await reached(systemId, MAAS_STATUS.ready);
  await maas.deleteMachine(target, systemId, aCall());
  expect(await maas.findMachine(target, systemId, aCall())).toBeUndefined();
  expect(observedStateOf(undefined)).toBe("absent");
});

test("links the port that boots", async () => {
  const { systemId } = await readyServer();
  const before = await maas.findMachine(target, systemId, aCall());
  const boot = before?.interfaces.find(({ id }) => id === before.bootInterfaceId);
  const place = { systemId, interfaceId: boot?.id ?? 0 };
  expect(boot?.links).toEqual([expect.objectContaining({ mode: "link_up", subnetId: null })]);
  await maas.linkSubnet(target, { ...place, subnetId: 1, ipAddress: null }, aCall());
  const linked = (await maas.findMachine(target, systemId, aCall()))?.interfaces[0]?.links;
  expect(linked).toEqual([expect.objectContaining({ mode: "auto", subnetId: 1 })]);
  await maas.unlinkSubnet(target, { ...place, linkId: linked?.[0]?.id ?? 0 }, aCall());
  expect((await maas.findMachine(target, systemId, aCall()))?.interfaces[0]?.links[0]?.mode).toBe("link_up");
});

test("says in MAAS's own words what it refuses", async () => {
  const { systemId } = await readyServer();
  const refused = maas.abort(target, systemId, "", aCall());
  await expect(refused).rejects.toMatchObject({ code: "refused_by_device", status: 409 });
  await expect(refused).rejects.toThrow("Node is not in a state that can be aborted: Ready.");
  const wrong = maas.deploy(
    target,
    systemId,
    { userData: "", distroSeries: "warty", hardwareSync: false, comment: "" },
    aCall(),
  );
  await expect(wrong).rejects.toThrow("distro_series: 'warty' is not a valid distro_series");
  await expect(wrong).rejects.toMatchObject({ status: 400 });
});

test("finds the reason of a deployment that failed", async () => {
  const { id, systemId } = await readyServer();
  await maas.linkSubnet(target, { systemId, interfaceId: 1, subnetId: 1, ipAddress: null }, aCall());
  await control("POST", "/faults", { device: id, fault: { type: "deploy_datasource_fails" }, times: 1 });
  await maas.deploy(target, systemId, { userData: "", distroSeries: null, hardwareSync: false, comment: "" }, aCall());
  await reached(systemId, MAAS_STATUS.failedDeployment);
  const events = await maas.listEvents(target, systemId, aCall());
  expect(events[0]).toMatchObject({ level: "ERROR", description: expect.stringContaining("no datasource found") });
});

test.each([
  ["a region that is busy", { type: "status", status: 503, body: "no rack controller" }, { code: "busy", status: 503 }],
  ["half an answer", { type: "garbage" }, { code: "protocol" }],
  ["a redirect", { type: "status", status: 302, headers: { Location: "http://127.0.0.1:9/" } }, { code: "protocol" }],
  ["silence", { type: "drop" }, { code: "unreachable" }],
])("takes %s for what it is", async (_what, fault, failure) => {
  await control("POST", "/faults", { device: "maas", path: "/MAAS/api/2.0/machines/", fault, times: 1 });
  const fresh = createMaas({ gateway: createBmcGateway() });
  await expect(fresh.listMachines(target, {}, aCall())).rejects.toMatchObject(failure);
  fresh.close();
  await control("DELETE", "/faults");
});

test("reads no more than an answer should have", async () => {
  const flood = createServer((_, response) => response.end(JSON.stringify({ version: "x".repeat(5 * 1_024 * 1_024) })));
  await new Promise<void>((resolve) => flood.listen(0, "127.0.0.1", resolve));
  const { port } = flood.address() as AddressInfo;
  await expect(maas.readVersion({ ...target, port }, aCall())).rejects.toThrow("is larger than");
  flood.closeAllConnections();
  flood.close();
});

test("shows its key to nobody: not where it is wrong, and not in what MAAS repeats", async () => {
  const [consumer, token, secret = ""] = target.apiKey.split(":");
  const fresh = createMaas({ gateway: createBmcGateway() });
  const wrong = { ...target, apiKey: `${consumer}:${token}:not-${secret}` };
  const refused = await fresh.readUser(wrong, aCall()).catch((error: unknown) => error as Error);
  expect(refused).toMatchObject({ code: "credentials_rejected", status: 401 });
  const repeated = { type: "status", status: 400, body: `bad header: oauth_signature="%26${secret}"` };
  await control("POST", "/faults", { device: "maas", fault: repeated, times: 1 });
  const said = await fresh.readUser(target, aCall()).catch((error: unknown) => error as Error);
  for (const error of [refused, said]) expect(String((error as Error).message)).not.toContain(secret);
  fresh.close();
});
