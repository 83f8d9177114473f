import { Controller } from "../../../src/engine/controller.ts";
import type { HandlerOf } from "../../../src/engine/pass.ts";
import { StepFailure } from "../../../src/kernel/errors.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { type Clock, systemClock } from "../../../src/kernel/time/clock.ts";
import { hours, minutes } from "../../../src/kernel/time/duration.ts";
import { createArtifacts } from "../../../src/providers/artifacts/artifacts.ts";
import { createMaas } from "../../../src/providers/maas/maas-provider.ts";
import { parseApiKey } from "../../../src/providers/maas/sign-in.ts";
import { createNvueFabric } from "../../../src/providers/nvue/nvue-fabric.ts";
import { createRedfishShelfProvider } from "../../../src/providers/redfish/shelf/redfish-shelf-provider.ts";
import { createRedfishSwitchProvider } from "../../../src/providers/redfish/switch/redfish-switch-provider.ts";
import { seedWriter } from "../../../src/providers/seeds/seed.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { serverSteps } from "../../../src/runs/steps/index.ts";
import type { ArtifactSource } from "../../../src/runs/steps/rack/on-device.ts";
import { Runbooks } from "../../../src/runs/steps/scripts/runbooks.ts";
import { allWorkflows } from "../../../src/runs/workflows/index.ts";
import type { Workflows } from "../../../src/runs/workflows/workflow.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { openInstallOrders } from "../../../src/services/install/orders.ts";
import type { RunDeps } from "../../../src/services/run/deps.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import { type Database, openDatabase } from "../../../src/store/postgres/database.ts";
import { wireHandlers } from "../../../src/wiring/handlers.ts";
import { wireMachineHardware } from "../../../src/wiring/machine-hardware.ts";
import { type RunParts, wireRunParts } from "../../../src/wiring/run-deps.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { SITE_FIRMWARE, SITE_SCRIPT } from "../step-kinds.ts";

/** Agents are told of a server that nobody runs. */
const FLEET_AGENTS = { taskTtl: minutes(15), silentAfter: minutes(3), server: "http://127.0.0.1:9" };

/** Nobody serves the file, so that devices are sent it. */
const SITE_FILES: ArtifactSource = {
  async find(digest) {
    if (digest !== SITE_FIRMWARE.digest) return undefined;
    const { image } = SITE_FIRMWARE;
    return {
      name: "bmc.fwpkg",
      bytes: image.length,
      async *chunks() {
        yield image;
      },
    };
  },
  async uriFor() {
    const facts = { what: "setting", name: "firmware.public_url" } as const;
    throw new StepFailure("not_on_this_server", "nobody serves firmware here", { facts });
  },
};

/** Firmware files that were downloaded to a directory that the replicas share. */
export interface FirmwareDirectory {
  readonly path: string;
  /** Whether devices fetch images from where the record has them; otherwise they are sent the images. */
  readonly isFetched: boolean;
}

function wireFirmware(db: Database, { path, isFetched }: FirmwareDirectory) {
  const artifacts = createArtifacts({ directory: path, mayReach: () => true, largest: 1_000_000_000 });
  const source: ArtifactSource = {
    async find(digest) {
      const file = await artifacts.find(digest);
      return file && { name: "firmware.bin", bytes: file.bytes, chunks: () => file.chunks() };
    },
    async uriFor(digest, device) {
      if (!isFetched) return SITE_FILES.uriFor(digest, device);
      const text = `select c -> 'file' ->> 'url' as url from rack_firmware f, jsonb_array_elements(f.components) c where c ->> 'digest' = $1`;
      const [file] = await db.query<{ url: string }>(text, [digest]);
      return file?.url ?? "";
    },
  };
  return { artifacts, artifactSource: source };
}

/** As much of a replica as carries out runs: the real engine, executor and providers, without listeners. It starts in a moment. */
export interface RunReplica {
  readonly deps: RunDeps;
  /** Takes up what is due. */
  work(): Promise<void>;
  stop(): Promise<void>;
}

export interface RunReplicaOptions {
  readonly url: string;
  readonly keyFile: string;
  readonly instance: string;
  /** Absent: the system's. */
  readonly clock?: Clock;
  /** That of the handlers; absent: the same. */
  readonly handlerClock?: Clock;
  /** Absent: those of the server. */
  readonly steps?: RunDeps["steps"];
  readonly workflows?: Workflows;
  /** Passes at the same time; absent: as many as those of the server. */
  readonly inFlight?: number;
  /** Where BMCs fetch seeds; absent: nobody serves them. */
  readonly seedsAt?: string | null | undefined;
  /** Absent: there is one image, which everybody has. */
  readonly firmware?: FirmwareDirectory;
  /** Whether it handles all kinds of things, and not only runs. */
  readonly handlesAll?: boolean;
  /** Around the handlers. */
  readonly around?: (kind: string, handlers: HandlerOf) => HandlerOf;
}

export function openRunReplica({
  url,
  keyFile,
  instance,
  clock = systemClock,
  handlerClock = clock,
  steps = serverSteps,
  workflows = allWorkflows,
  inFlight,
  seedsAt = null,
  firmware,
  handlesAll = false,
  around = (_, same) => same,
}: RunReplicaOptions): RunReplica {
  const db = openDatabase(url, { log: silentLog, applicationName: instance });
  const secrets = openSecretStore({ keyFile });
  const maas = createMaas({ gateway: createBmcGateway({ concurrency: 16 }) });
  const gate = { ...maas, checkKey: parseApiKey };
  const services: ServiceDeps = { db, stores: allStores, secrets, seedWriter, maas: gate, maxFindByIds: 100, clock };
  const gateway = createBmcGateway();
  const hardware = wireMachineHardware({
    clock,
    gateway,
    mayReach: () => true,
    netInstall: openInstallOrders({ db }),
  });
  const shelves = createRedfishShelfProvider({ gateway });
  const switches = createRedfishSwitchProvider({ gateway });
  const fabric = createNvueFabric({ gateway });
  const runbooks = new Runbooks({ [SITE_SCRIPT.ref]: SITE_SCRIPT.text });
  const parts = { db, secrets, clock, hardware, steps, runbooks, seedsAt };
  const starting: RunParts = { ...wireRunParts(parts), workflows, clusterProbes: null };
  const handlers = wireHandlers({
    db,
    secrets,
    ...{ provider: shelves, switches, fabric, maas, fleetAgents: FLEET_AGENTS },
    clock: handlerClock,
    monitorEvery: hours(1),
    exploreEvery: hours(1),
    seedsAt,
    ...(firmware ? wireFirmware(db, firmware) : { artifactSource: SITE_FILES }),
    runs: { hardware, steps, workflows, runbooks, starting, instance },
  });
  const handled = [...handlers].filter(([kind]) => handlesAll || kind === "run");
  const controller = new Controller({
    db,
    stores: allStores,
    log: silentLog,
    clock,
    owner: instance,
    ...(inFlight && { inFlight }),
    handlers: new Map(handled.map(([kind, handlerOf]) => [kind, around(kind, handlerOf)])),
  });
  const stop = new AbortController();
  const loops: Promise<void>[] = [];
  return {
    deps: { ...services, ...starting },
    async work() {
      await db.listen("millwright", () => controller.nudge(), stop.signal);
      loops.push(controller.run(stop.signal));
    },
    async stop() {
      stop.abort();
      await Promise.all(loops);
      await shelves.close();
      await switches.close();
      fabric.close();
      maas.close();
      await hardware.close();
      gateway.close();
      await db.close();
    },
  };
}

/** A replica that nobody needs any more finishes its pass: who is killed for it might be so between a commit and the place after it. */
export function stopWhenTold(replica: RunReplica): void {
  process.once("SIGTERM", () => void replica.stop().then(() => process.exit(0)));
}
