import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { setMachineCredentials } from "../../src/services/machine/credentials.ts";
import { registerMachine } from "../../src/services/machine/machines.ts";
import { openSecretStore } from "../../src/store/access/secrets.ts";
import type { Database } from "../../src/store/postgres/database.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import type { BenchServer } from "../bench-server.ts";
import type { Measurement } from "../measurement.ts";
import { type SimulatedSite, startSimulatedSite } from "../racks/simulated-site.ts";
import { type ServeProcess, startServeProcess } from "../serve-process.ts";
import { type CallsSeen, startCountingProxy } from "./counting-proxy.ts";

/** A commissioning takes five seconds, and a deployment ten. */
const SPEED = 60;
/** As many calls as a MAAS is spared more than. */
const MOST_AT_ONCE = 16;
const REGISTERED_AT_ONCE = 20;
const PATIENCE_MS = 200_000;
const SITE = "bench";
const PROFILE = "gpu";
/** What may reach the hardware of a node no more than once. */
const COMMANDS = ["commission", "set_storage_layout", "deploy"];

interface Host {
  readonly id: string;
  readonly ipmi_address: string;
  readonly ipmi_username: string;
  readonly ipmi_password: string;
}

interface SimulatedMaas {
  readonly url: string;
  readonly api_key: string;
  readonly hosts: readonly Host[];
}

/**
 * Many nodes are onboarded over REST in the same moment, by `millwright serve`, a simulated MAAS and the agents of the systems that it
 * installs. A node that is not active in the end, a command that MAAS got twice or refused, or more calls at once than a MAAS is
 * asked to bear, ends the measurement with an error.
 */
export async function measureFleetOnboardings(
  server: BenchServer,
  { quick }: { quick: boolean },
): Promise<Measurement[]> {
  const count = quick ? 20 : 200;
  const directory = mkdtempSync(join(tmpdir(), "millwright-bench-onboardings-"));
  const keyFile = join(directory, "secret.key");
  const database = await server.freshDatabase();
  const site = await startSimulatedSite(`racks=1,maas=${count}`, SPEED);
  const maas = (await (await fetch(new URL("/maas", site.controlUrl))).json()) as SimulatedMaas;
  const proxy = await startCountingProxy(maas.url);
  let serving: ServeProcess | undefined;
  try {
    await addMachines(database.db, keyFile, maas.hosts);
    const listen = `127.0.0.1:${await freePort()}`;
    const env = { MILLWRIGHT_HTTP_LISTEN: listen, MILLWRIGHT_FLEET_PUBLIC_URL: `http://${listen}` };
    serving = await startServeProcess(database.config, { keyFile, env });
    await addSite(serving, { url: proxy.url, apiKey: maas.api_key });
    const { calls: callsBefore } = proxy.seen();
    const cpuBefore = cpuOf(server, serving, site);
    const took = await onboardAll(database.db, serving, maas.hosts);
    const seen = proxy.seen();
    check(seen, count);
    return measurementsOf(count, {
      ...{ took, mostAtOnce: seen.mostAtOnce, callsANode: (seen.calls - callsBefore) / count },
      cpu: cpuOf(server, serving, site).map((now, index) => now - (cpuBefore[index] ?? 0)),
      peakMb: serving.peakMb(),
    });
  } finally {
    await site.stop(); // its agents ask the server until they end
    await serving?.stop();
    await proxy.stop();
    await database.drop();
    rmSync(directory, { recursive: true, force: true });
  }
}

const cpuOf = (server: BenchServer, serving: ServeProcess, site: SimulatedSite): readonly number[] => [
  server.cpuSeconds(),
  serving.cpuSeconds(),
  site.cpuSeconds(),
];

/** Nodes are told where the server is, which therefore cannot choose its port itself. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** With the accounts of their management controllers, as an inventory has them before anything is onboarded. */
async function addMachines(db: Database, keyFile: string, hosts: readonly Host[]): Promise<void> {
  const deps = { db, stores: allStores, secrets: openSecretStore({ keyFile }), maxFindByIds: 100 };
  const caller = { name: "bench", roles: ["admin"], address: null };
  const nowhere = { rack: "", slot: "", location: "", customerId: "", targetClusterRef: "" };
  const noSystem = { serial: "", macAddresses: [], sshEndpoint: "", sshHostKey: "", jumpHosts: [] };
  const left = hosts.values();
  const add = async () => {
    for (const { id, ipmi_address, ipmi_username, ipmi_password } of left) {
      const machineId = `m-${id}`;
      const bmc = { provider: "maas", bmcEndpoint: ipmi_address, bmcProtocol: "ipmi", bmcTlsTrust: "" };
      await registerMachine(deps, caller, { id: machineId, labels: {}, spec: { ...nowhere, ...noSystem, ...bmc } });
      const account = { bmcUsername: ipmi_username, bmcPassword: ipmi_password, sshUsername: "", sshPrivateKey: "" };
      await setMachineCredentials(deps, caller, { machineId, ...account });
    }
  };
  await Promise.all(Array.from({ length: REGISTERED_AT_ONCE }, add));
}

async function ask({ httpUrl }: ServeProcess, method: string, path: string, body: object): Promise<void> {
  const answer = await fetch(`${httpUrl}/api/v1/fleet/${path}`, {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
}

async function addSite(serving: ServeProcess, { url, apiKey }: { url: string; apiKey: string }): Promise<void> {
  await ask(serving, "POST", "sites", { name: SITE, url, api_key: apiKey, allow_http: true });
  await ask(serving, "PUT", `sites/${SITE}/profiles/${PROFILE}`, { policy: {} });
}

/** The seconds from the first call until the last node was active. */
async function onboardAll(db: Database, serving: ServeProcess, hosts: readonly Host[]): Promise<number> {
  const startedAt = performance.now();
  await Promise.all(
    hosts.map(({ id, ipmi_address }) =>
      ask(serving, "POST", "nodes", {
        ...{ request_id: id, site: SITE, profile: PROFILE, sku: "gpu8", hostname: `node-${id}` },
        ipmi_ip: ipmi_address,
      }),
    ),
  );
  for (;;) {
    const states = await statesOf(db);
    if (states.get("active") === hosts.length) return (performance.now() - startedAt) / 1_000;
    const isFailed = [...states.keys()].some((state) => state !== "enrolling" && state !== "active");
    if (isFailed || performance.now() - startedAt > PATIENCE_MS) throw new Error(await complaint(db));
    await pause(100);
  }
}

async function statesOf(db: Database): Promise<ReadonlyMap<string, number>> {
  const rows = await db.query<{ state: string; count: string }>(
    "select state, count(*) as count from fleet_nodes group by state",
  );
  return new Map(rows.map(({ state, count }) => [state, Number(count)]));
}

async function complaint(db: Database): Promise<string> {
  const rows = await db.query<{ state: string; run: string; error: string | null; count: string }>(
    `select n.state, r.state as run, r.error, count(*) as count from fleet_nodes n join runs r on r.target_id = n.id
      group by 1, 2, 3 order by 4 desc limit 10`,
  );
  const lines = rows.map(
    ({ state, run, error, count }) => `${count} nodes are ${state}, their jobs ${run} ${error ?? ""}`,
  );
  return ["not all nodes became active:", ...lines].join("\n");
}

function check({ mostAtOnce, byName, failures }: CallsSeen, count: number): void {
  if (mostAtOnce > MOST_AT_ONCE) throw new Error(`MAAS had ${mostAtOnce} calls at once, and not ${MOST_AT_ONCE}`);
  if (failures.length > 0) throw new Error(`MAAS did not do all: ${failures.slice(0, 5).join("; ")}`);
  for (const command of COMMANDS)
    if (byName.get(command) !== count)
      throw new Error(`MAAS was sent ${command} ${byName.get(command) ?? 0} times for ${count} nodes`);
}

interface Onboarded {
  readonly took: number;
  readonly mostAtOnce: number;
  readonly callsANode: number;
  /** Of the database, the server and the simulator. */
  readonly cpu: readonly number[];
  readonly peakMb: number;
}

function measurementsOf(count: number, { took, mostAtOnce, callsANode, cpu, peakMb }: Onboarded): Measurement[] {
  const whose = ["the database", "the server", "the simulator with its agents"];
  return [
    { what: `${count} onboardings at once, first call → last active`, values: [took], unit: "s", better: "lower" },
    {
      what: "  most calls to MAAS under way at once",
      ...{ values: [mostAtOnce], unit: "", target: MOST_AT_ONCE, better: "lower" },
    },
    { what: "  calls to MAAS, for each node", values: [callsANode], unit: "", better: "lower" },
    ...cpu.map(
      (seconds, index): Measurement => ({
        what: `  processor time of ${whose[index] ?? ""}`,
        ...{ values: [seconds], unit: "s", better: "lower" },
      }),
    ),
    { what: "  memory of the server at its peak", values: [peakMb], unit: "MB", better: "lower" },
  ];
}
