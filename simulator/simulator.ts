import { mkdirSync } from "node:fs";
import type { Server } from "node:net";
import { join } from "node:path";
import { loadOrCreateCertificate } from "./certificate/certificate.ts";
import { checkFaultRule, createControlServer } from "./control-api.ts";
import { lockDataDirectory } from "./data-directory-lock.ts";
import { Machine } from "./devices/machine.ts";
import { PowerShelf } from "./devices/power-shelf.ts";
import { FaultBook } from "./faults/fault-book.ts";
import { InvalidInput } from "./invalid-input.ts";
import { listen } from "./listening.ts";
import { machineTree } from "./redfish/machine-resources.ts";
import { powerShelfTree } from "./redfish/power-shelf-resources.ts";
import { createRedfishListener, type RedfishDevice } from "./redfish/redfish-listener.ts";
import { RedfishService } from "./redfish/redfish-service.ts";
import { createSeededValues, type SeededValues } from "./seeded-values.ts";
import {
  type ClockAnchor,
  createSimulatedClock,
  FASTEST_SPEED,
  type SimulatedClock,
  SLOWEST_SPEED,
} from "./simulated-clock.ts";
import { loadSite, type Site } from "./site.ts";
import { createSiteKeys, type SiteKeys } from "./ssh/site-keys.ts";
import { openStateJournal, type StateJournal } from "./state-journal.ts";

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
  readonly controlPort?: number;
  /** Fault rules from the start, in the form that the control API takes. */
  readonly faults?: readonly unknown[];
  readonly log?: (line: string) => void;
}

export interface Simulator {
  readonly redfishPort: number;
  readonly controlUrl: string;
  close(): Promise<void>;
}

const CONTROL_HOST = "127.0.0.1";
const SHELF_TREES = { liteon: powerShelfTree("liteon"), standard: powerShelfTree("standard") } as const;
const MACHINE_TREE = machineTree();

/** Brings the simulated datacentre up, as it was left, and resolves once both ports answer. */
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
    const world = createWorld({ options, site, seeded, journal, clock });
    const ports = await openPorts({ options, site, journal, clock, world, log, cleanUp });
    const kept = world.faults.list().length;
    if (kept > 0) log(`fault rules in force: ${kept}; GET ${ports.controlUrl}/faults lists them`);
    return { ...ports, close: () => cleanUp.disposeAsync() };
  } catch (error) {
    await cleanUp.disposeAsync();
    throw error;
  }
}

interface World {
  readonly shelves: ReadonlyMap<string, PowerShelf>;
  readonly machines: ReadonlyMap<string, Machine>;
  readonly byAddress: ReadonlyMap<string, RedfishDevice>;
  readonly faults: FaultBook;
  readonly keys: SiteKeys;
}

function createWorld(parts: {
  options: SimulatorOptions;
  site: Site;
  seeded: SeededValues;
  journal: StateJournal;
  clock: SimulatedClock;
}): World {
  const { options, site, seeded, journal, clock } = parts;
  const ids = [...site.shelves, ...site.machines].map(({ id }) => id).concat(site.clusters.map(({ name }) => name));
  const atStart = (options.faults ?? []).map((rule, index) => checkFaultRule(rule, ids, `faults[${index}]`));
  const faults = new FaultBook({ journal, seeded, realNow: clock.realNow, atStart });
  const surroundings = (kind: "shelf" | "machine") => ({
    clock,
    seeded,
    load: (id: string) => journal.get(`${kind}/${id}`),
    save: (id: string, state: unknown) => journal.put(`${kind}/${id}`, state),
    isFaultPresent: (id: string) => faults.get(id) !== undefined,
  });
  const aroundShelves = surroundings("shelf");
  const aroundMachines = {
    ...surroundings("machine"),
    images: site.images,
    pxeImage: site.pxe.image,
    installFails: (device: string) => faults.strike("install_fails", { device }) !== undefined,
  };
  const shelves = new Map(site.shelves.map((spec) => [spec.id, new PowerShelf(spec, aroundShelves)]));
  const machines = new Map(site.machines.map((spec) => [spec.id, new Machine(spec, aroundMachines)]));
  const behind = { faults, seeded, realNow: clock.realNow };
  const byAddress = new Map<string, RedfishDevice>();
  for (const device of shelves.values()) {
    const tree = SHELF_TREES[device.spec.layout];
    byAddress.set(device.spec.address, { device, service: new RedfishService({ device, tree, ...behind }) });
  }
  for (const device of machines.values()) {
    const service = new RedfishService({ device, tree: MACHINE_TREE, ...behind });
    byAddress.set(device.spec.address, { device, service });
  }
  return { shelves, machines, byAddress, faults, keys: createSiteKeys(seeded) };
}

async function openPorts(parts: {
  options: SimulatorOptions;
  site: Site;
  journal: StateJournal;
  clock: SimulatedClock;
  world: World;
  log: (line: string) => void;
  cleanUp: AsyncDisposableStack;
}): Promise<{ redfishPort: number; controlUrl: string }> {
  const { options, site, journal, clock, world, log, cleanUp } = parts;
  const addresses = [...site.shelves, ...site.machines].map(({ address }) => address);
  const certificate = loadOrCreateCertificate(options.dataDir, addresses, new Date(clock.realNow()));
  const redfish = createRedfishListener({
    certificate,
    deviceAt: (address) => world.byAddress.get(address),
    faults: world.faults,
    log,
  });
  const open = async (
    server: Server & { closeAllConnections(): void },
    name: "redfish" | "control",
    host: string,
    asked = 0,
  ) => {
    const before = journal.get(`port/${name}`) as number | undefined;
    const port = await listen(server, { host, port: asked === 0 ? (before ?? 0) : asked, flag: `--${name}-port` });
    cleanUp.defer(() => closeServer(server));
    // Too many open files, for one, is no reason to take all devices down.
    server.on("error", (error) => log(`${name} listener: ${error.message}`));
    if (port !== before) journal.put(`port/${name}`, port);
    return port;
  };
  const redfishPort = await open(redfish, "redfish", "0.0.0.0", options.redfishPort);
  const control = createControlServer({
    shelves: world.shelves,
    machines: world.machines,
    site,
    keys: world.keys,
    clusters: () => [],
    faults: world.faults,
    clock,
    endpoints: { redfishPort, sshPort: 0, hostKey: (machine) => world.keys.hostKey(machine).publicKey },
    setSpeed: (speed) => journal.put("clock", clock.setSpeed(speed)),
    log,
  });
  const controlPort = await open(control, "control", CONTROL_HOST, options.controlPort);
  return { redfishPort, controlUrl: `http://${CONTROL_HOST}:${controlPort}` };
}

/** Hung requests are part of the act, so closing does not wait for them. */
function closeServer(server: Server & { closeAllConnections(): void }): Promise<void> {
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
