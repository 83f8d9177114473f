import { mkdirSync } from "node:fs";
import type { Server } from "node:net";
import { join } from "node:path";
import { loadOrCreateCertificate } from "./certificate/certificate.ts";
import { createControlServer } from "./control-api.ts";
import type { ClusterDescription } from "./control-route.ts";
import { lockDataDirectory } from "./data-directory-lock.ts";
import type { ManagedDevice } from "./devices/managed-device.ts";
import { InvalidInput } from "./invalid-input.ts";
import type { Cluster } from "./kubernetes/cluster.ts";
import { accessTo } from "./kubernetes/cluster-access.ts";
import { adminKubeconfig } from "./kubernetes/kubeconfig.ts";
import { createKubernetesApi } from "./kubernetes/kubernetes-api.ts";
import { listen } from "./listening.ts";
import { HostAgents } from "./maas/host-agents.ts";
import { createMaasApi } from "./maas/maas-api.ts";
import { type ApiKey, SignIn, textOf } from "./maas/sign-in.ts";
import { InstallerCalls } from "./netboot/installer-calls.ts";
import { NetworkBoots } from "./netboot/network-boots.ts";
import { createRackManagerServer } from "./rack-manager/grpc-server.ts";
import type { RackManagerApi } from "./rack-manager/numbering.ts";
import { type ManagedRacks, RackManager } from "./rack-manager/rack-manager.ts";
import { createRedfishListener } from "./redfish/redfish-listener.ts";
import { createSeededValues, type SeededValues } from "./seeded-values.ts";
import type { JoinVerdict } from "./shell/shell-session.ts";
import {
  type ClockAnchor,
  createSimulatedClock,
  FASTEST_SPEED,
  type SimulatedClock,
  SLOWEST_SPEED,
} from "./simulated-clock.ts";
import { BASTION_ADDRESS } from "./site/fields.ts";
import { loadSite, type Site } from "./site.ts";
import { createSshListener } from "./ssh/ssh-listener.ts";
import { openStateJournal, type StateJournal } from "./state-journal.ts";
import { BOOT_SERVER, createWorld, type World } from "./world.ts";

export interface SimulatorOptions {
  /** Made if missing. Holds the devices' state, the ports, the certificate: all that must outlive the process. */
  readonly dataDir: string;
  /** 1 is lifelike. */
  readonly speed: number;
  /** Serials, MACs, passwords and chances follow from it. A data directory belongs to one seed. */
  readonly seed: number;
  /** `racks=N`, or the path of a site file. */
  readonly site: string;
  /** Absent or 0: the port of the last start, on the first start a free one. */
  readonly redfishPort?: number;
  readonly sshPort?: number;
  readonly controlPort?: number;
  /** Where machines that boot from the network find their boot server; absent: where they were last told. */
  readonly bootUrl?: string;
  /** Whether the site has a rack manager, and which numbering it speaks. */
  readonly rackManager?: RackManagerApi;
  /** Fault rules from the start, in the form that the control API takes. */
  readonly faults?: readonly unknown[];
  readonly log?: (line: string) => void;
}

export interface Simulator {
  readonly redfishPort: number;
  readonly sshPort: number;
  readonly controlUrl: string;
  close(): Promise<void>;
}

const CLUSTER_PORT = "cluster-";
const LOOPBACK = "127.0.0.1";
const REACHED_BY_ALL = new Set([LOOPBACK, BASTION_ADDRESS]);
/** A range of loopback addresses cannot be bound otherwise; the listeners cut whatever comes from elsewhere. */
const ALL_ADDRESSES = "0.0.0.0";

/** Brings the simulated datacentre up, as it was left, and resolves once all ports answer. */
export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const log = options.log ?? (() => {});
  checkNumber("speed", options.speed, SLOWEST_SPEED, FASTEST_SPEED);
  if (!Number.isSafeInteger(options.seed)) throw new InvalidInput("seed", "must be a whole number");
  const seeded = createSeededValues(options.seed);
  const site = loadSite(options.site, seeded);
  mkdirSync(options.dataDir, { recursive: true, mode: 0o700 });

  const cleanUp = new AsyncDisposableStack();
  try {
    cleanUp.defer(await lockDataDirectory(options.dataDir));
    const journal = openStateJournal(join(options.dataDir, "devices.jsonl"));
    cleanUp.defer(() => journal.close());
    requireSameSeed(journal, options);
    const clock = resumeClock(journal, options.speed);
    if (options.bootUrl !== undefined) journal.put(BOOT_SERVER, options.bootUrl);
    const world = createWorld({ atStart: options.faults ?? [], site, seeded, journal, clock });
    const ports = await openPorts({ options, site, journal, clock, world, log, cleanUp });
    const kept = world.faults.list().length;
    if (kept > 0) log(`fault rules in force: ${kept}; GET ${ports.controlUrl}/faults lists them`);
    return { ...ports, close: () => cleanUp.disposeAsync() };
  } catch (error) {
    await cleanUp.disposeAsync();
    throw error;
  }
}

type ClosableServer = Server & { closeAllConnections(): void };
type OpenPort = (server: ClosableServer, name: string, host: string, asked?: number) => Promise<number>;

/** Each port is the one of the last start, unless another one is asked for. */
function portOpener(parts: {
  journal: StateJournal;
  log: (line: string) => void;
  cleanUp: AsyncDisposableStack;
}): OpenPort {
  const { journal, log, cleanUp } = parts;
  return async (server, name, host, asked = 0) => {
    const before = journal.get(`port/${name}`) as number | undefined;
    const flag = name.startsWith(CLUSTER_PORT) ? undefined : `--${name}-port`;
    const port = await listen(server, { host, port: asked === 0 ? (before ?? 0) : asked, flag });
    cleanUp.defer(() => closeServer(server));
    // Too many open files, for one, is no reason to take all devices down.
    server.on("error", (error) => log(`${name} listener: ${error.message}`));
    if (port !== before) journal.put(`port/${name}`, port);
    return port;
  };
}

async function openPorts(parts: {
  options: SimulatorOptions;
  site: Site;
  journal: StateJournal;
  clock: SimulatedClock;
  world: World;
  log: (line: string) => void;
  cleanUp: AsyncDisposableStack;
}): Promise<Omit<Simulator, "close">> {
  const { options, site, journal, clock, world, log } = parts;
  const open = portOpener(parts);
  const { faults, keys, byAddress, machineAt } = world;
  const certificate = loadOrCreateCertificate(options.dataDir, [...byAddress.keys()], new Date(clock.realNow()));
  const ownCertificate = ({ spec }: ManagedDevice, number: number) =>
    loadOrCreateCertificate(options.dataDir, [spec.address], new Date(clock.realNow()), `${spec.id}-${number}`);
  const deviceAt = (address: string) => byAddress.get(address);
  const redfish = createRedfishListener({ certificate, ownCertificate, deviceAt, faults, log });
  const redfishPort = await open(redfish, "redfish", ALL_ADDRESSES, options.redfishPort);

  const endpointOf = new Map<string, string>();
  for (const cluster of world.clusters) {
    const api = createKubernetesApi({ cluster, clock, faults, log });
    endpointOf.set(cluster.name, `${LOOPBACK}:${await open(api, `${CLUSTER_PORT}${cluster.name}`, LOOPBACK)}`);
  }
  const ssh = createSshListener({
    machineAt,
    keys,
    faults,
    surroundings: {
      clock,
      judgeJoin: (request) => judgeJoin(world, endpointOf, request),
      joinFails: (device) => faults.strike("join_fails", { device }) !== undefined,
      reaches: (address) => REACHED_BY_ALL.has(address) || machineAt(address)?.upBootId !== undefined,
      cluster: (name) =>
        world.clusters.filter((cluster) => cluster.name === name).map((cluster) => accessTo(cluster, clock))[0],
    },
    log,
  });
  const sshPort = await open(ssh, "ssh", ALL_ADDRESSES, options.sshPort);

  const manager = options.rackManager && new RackManager(options.rackManager, racksOf(world));
  const managed =
    manager === undefined
      ? undefined
      : { manager, port: await open(createRackManagerServer(manager, faults), "rack-manager", LOOPBACK) };

  const maasKey = apiKeyOf(createSeededValues(options.seed));
  const maasUrl =
    world.maas &&
    `http://${LOOPBACK}:${await open(
      createMaasApi({ region: world.maas, signIn: new SignIn([maasKey], clock.realNow), log }),
      "maas",
      LOOPBACK,
    )}/MAAS`;

  if (world.maas) {
    const agents = new HostAgents({ region: world.maas, journal, clock, log });
    parts.cleanUp.defer(() => agents.close());
  }

  const boots = new NetworkBoots({
    ...world,
    clock,
    images: site.images,
    pxeImage: site.pxe.image,
    bootServer: () => world.bootServer.url,
    log,
  });
  parts.cleanUp.defer(() => boots.close());
  world.onBoot((id) => boots.watch(id));
  const calls = new InstallerCalls({ ...world, log });
  parts.cleanUp.defer(() => calls.close());
  world.onBoot((id) => calls.watch(id));
  const control = createControlServer({
    ...world,
    setBootServer: (url) => {
      journal.put(BOOT_SERVER, url);
      world.bootServer.url = url;
      boots.bootServerChanged();
    },
    site,
    clusters: () => world.clusters.map((cluster) => describeCluster(cluster, endpointOf.get(cluster.name) ?? "")),
    clusterNamed(name) {
      const cluster = world.clusters.find((one) => one.name === name);
      return cluster && { cluster, endpoint: endpointOf.get(name) ?? "" };
    },
    clock,
    rackManager: () =>
      managed && {
        url: `http://${LOOPBACK}:${managed.port}`,
        api: options.rackManager,
        calls: managed.manager.seen,
      },
    maas: () => (world.maas && maasUrl ? { region: world.maas, url: maasUrl, apiKey: textOf(maasKey) } : undefined),
    endpoints: { redfishPort, sshPort, hostKey: (machine) => keys.hostKey(machine).publicKey },
    setSpeed: (speed) => journal.put("clock", clock.setSpeed(speed)),
    log,
  });
  const controlPort = await open(control, "control", LOOPBACK, options.controlPort);
  return { redfishPort, sshPort, controlUrl: `http://${LOOPBACK}:${controlPort}` };
}

/** The key of the one user that every MAAS has. */
const apiKeyOf = (seeded: SeededValues): ApiKey => ({
  consumer: seeded.hex("maas/consumer", 18),
  token: seeded.hex("maas/token", 18),
  secret: seeded.hex("maas/secret", 32),
});

function racksOf({ byAddress, switches, faults }: World): ManagedRacks {
  const byMac = new Map([...byAddress.values()].map(({ device }) => [device.spec.mac, device]));
  const trays = new Map([...switches.values()].map((tray) => [tray.spec.mac, tray]));
  return {
    deviceAt: ({ mac, address }) => byMac.get(mac) ?? byAddress.get(address)?.device,
    switchAt: ({ mac }) => trays.get(mac),
    activate: (device) => device.activate(),
    stoppedBy: (device) => faults.strike("job_never_ends", { device })?.id,
    isFaultPresent: (id) => faults.get(id) !== undefined,
  };
}

function judgeJoin(
  { clusters }: World,
  endpointOf: ReadonlyMap<string, string>,
  request: Parameters<Cluster["judge"]>[0] & { readonly endpoint: string },
): JoinVerdict {
  const endpoint = request.endpoint.replace(/^https?:\/\//, "").replace(/\/$/, "");
  const cluster = clusters.find(({ name }) => endpointOf.get(name) === endpoint);
  return (
    cluster?.judge(request) ?? { refused: `couldn't validate the identity of the API Server: no route to ${endpoint}` }
  );
}

function describeCluster(cluster: Cluster, endpoint: string): ClusterDescription {
  return {
    name: cluster.name,
    api_url: `http://${endpoint}`,
    api_url_tls: `https://${endpoint}`,
    token: cluster.token,
    kubeconfig: adminKubeconfig(cluster, endpoint),
    join_endpoint: endpoint,
    ca_certificate: cluster.certificate.cert,
    ca_cert_hash: cluster.caCertHash,
    nodes: cluster.nodes().map(({ name }) => name),
  };
}

/** Hung requests are part of the act, so closing does not wait for them. */
function closeServer(server: ClosableServer): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  server.closeAllConnections();
  return promise;
}

/** Time has gone on at the speed of before while nobody was there; from now on it goes at the speed asked for. */
function resumeClock(journal: StateJournal, speed: number): SimulatedClock {
  const now = Date.now();
  const before = journal.get("clock") as ClockAnchor | undefined;
  const clock = createSimulatedClock(before ?? { realAt: now, simulatedAt: now, speed });
  if (before?.speed !== speed) journal.put("clock", clock.setSpeed(speed));
  return clock;
}

function requireSameSeed(journal: StateJournal, { seed, dataDir }: SimulatorOptions): void {
  const before = journal.get("seed");
  if (before === undefined) journal.put("seed", seed);
  else if (before !== seed) {
    throw new InvalidInput(
      "seed",
      `${dataDir} holds the devices of seed ${String(before)}; use that seed, or another data directory`,
    );
  }
}

function checkNumber(field: string, value: number, least: number, most: number): void {
  if (!(value >= least && value <= most)) throw new InvalidInput(field, `must be a number from ${least} to ${most}`);
}
