import { once } from "node:events";
import type { Allocator } from "../capabilities/fleet/allocator.ts";
import type { Maas } from "../capabilities/fleet/maas.ts";
import type { SeededMedia } from "../capabilities/seeds/seeded-media.ts";
import { type Config, publicUrlsOf } from "../config.ts";
import { ConditionReconciler } from "../engine/conditions/condition-reconciler.ts";
import { Controller } from "../engine/controller.ts";
import { DrainGate } from "../engine/drain-gate.ts";
import { collectUnsealed, runSealing } from "../engine/journal-sealing.ts";
import { RestoreBeats } from "../engine/restore-beats.ts";
import { runRetention } from "../engine/retention.ts";
import { collectSecretKeys, runSecretKeys } from "../engine/secret-keys.ts";
import { type Loop, superviseLoops } from "../engine/supervisor.ts";
import { runSweep } from "../engine/sweep.ts";
import { collectTokenAges, runTokenUpkeep, type TokenUses } from "../engine/token-upkeep.ts";
import { JournalTail } from "../engine/watch.ts";
import type { Log } from "../kernel/log.ts";
import type { Clock } from "../kernel/time/clock.ts";
import { type Duration, milliseconds } from "../kernel/time/duration.ts";
import type { RackLimits } from "../lifecycles/rack/plan-work.ts";
import { createBmcGateway } from "../providers/transport/bmc-gateway.ts";
import { serverSteps } from "../runs/steps/index.ts";
import type { Runbooks } from "../runs/steps/scripts/runbooks.ts";
import { openInstallOrders } from "../services/install/orders.ts";
import type { SecretStore } from "../store/access/secrets.ts";
import type { EventSource } from "../store/lifecycle/event-source.ts";
import { openSealKey } from "../store/lifecycle/seals/journal-seals.ts";
import type { ThingStores } from "../store/lifecycle/things.ts";
import { measureChecks } from "../store/machine/condition-checks.ts";
import type { Database } from "../store/postgres/database.ts";
import type { RestoreWatch } from "../store/restore/restore-watch.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { observeChecks, observeDeviceCalls, observeEngine, observeSteps } from "../telemetry/observers.ts";
import { readCaCertificates } from "./ca-certificates.ts";
import { type CheckPlacesWiring, wireCheckPlaces } from "./check-places.ts";
import { wireDeviceEvents } from "./device-events.ts";
import { collectFleet, fleetLoops } from "./fleet/fleet-loops.ts";
import { type HandlerWiring, wireHandlers, wireRunTargets } from "./handlers.ts";
import { type MachineHardware, wireMachineHardware } from "./machine-hardware.ts";
import type { FirmwareFiles } from "./rack/artifacts.ts";
import type { DeviceTools } from "./rack/device-parts.ts";
import { type RackHardware, wireRackHardware } from "./rack/hardware.ts";
import { collectRackAdmission, countingMaintenance } from "./rack/maintenance-metrics.ts";
import { wireReadFirmware } from "./rack/read-firmware.ts";
import { type RunParts, wireRunParts } from "./run-deps.ts";
import { countingRuns } from "./runs/run-metrics.ts";
import { createSignInLedger } from "./sign-in-ledger.ts";
import { wireStepTargets } from "./step-targets.ts";
import { storesOf } from "./things/all-things.ts";
import type { ThingParts } from "./things/thing.ts";

export interface Engine {
  readonly events: EventSource;
  /** What can be done with machines. */
  readonly hardware: Pick<MachineHardware, "providers" | "clusterAccess">;
  /** What runs are started with. */
  readonly runs: RunParts;
  /** What racks keep to. */
  readonly rackLimits: RackLimits;
  /** Has it hand its work over and take none, or work again. Watchers and upkeep go on. */
  drain(isDraining: boolean): void;
  /** Why the engine is not doing its work; null when it is. */
  trouble(): string | null;
  stop(): Promise<void>;
}

/** All devices that an engine works on. */
export interface EngineHardware {
  readonly racks: RackHardware;
  readonly machines: MachineHardware;
}

export interface EngineWiring {
  readonly db: Database;
  readonly secrets: SecretStore;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly replica: string;
  readonly config: Config;
  readonly runbooks: Runbooks;
  readonly mayReach: (address: string) => boolean;
  /** The one that all replicas share. */
  readonly clock: Clock;
  /** Absent: there are none here. */
  readonly firmwareFiles?: FirmwareFiles;
  /** What stands in for real devices. Absent: they are reached over the network. */
  readonly hardware?: EngineHardware;
  /** Absent: no image is served with a seed in it. */
  readonly seededMedia?: SeededMedia;
  /** Absent: no MAAS is called. */
  readonly maas?: Maas;
  /** Absent: nobody outside prepares fleet nodes for their users. */
  readonly allocator?: Allocator;
  /** Where simulated nodes reach the server, once it is up. Absent: there are none. */
  readonly simulatedNodesAt?: { readonly url: string | null };
  readonly things: readonly ThingParts[];
  /** Absent: nobody asks whether the database was restored. */
  readonly watch?: RestoreWatch;
  /** Absent: nobody signs in here. */
  readonly tokenUses?: TokenUses;
}

function settingsOf({ config, simulatedNodesAt }: Pick<EngineWiring, "config" | "simulatedNodesAt">) {
  const { monitor, explorer, install, hostFirmware, rack, rackManager, fleet } = config;
  const urls = publicUrlsOf(config);
  return {
    fleetAgents: {
      ...{ taskTtl: fleet.taskTtl, silentAfter: fleet.offlineAfter },
      get server() {
        return urls.fleet ?? simulatedNodesAt?.url ?? null;
      },
    },
    monitorEvery: monitor.interval,
    monitorEveryWithEvents: milliseconds(Math.max(monitor.interval, monitor.eventsInterval)),
    exploreEvery: explorer.interval,
    installTimeout: install.timeout,
    seedsAt: urls.bmc,
    installersAt: urls.boot,
    hostFirmware: { ...hostFirmware, flashDeadline: rack.flashDeadline },
    rackLimits: { ...rack, hasRackManager: rackManager.url !== null },
  };
}

const keptFor = ({ history, audit }: Config) => ({ retention: history.retention, refusalsKept: audit.refusalsKept });

const discoveredFor = ({ install }: Config, stores: ThingStores) => ({ stores, unseenFor: install.discoveredTtl });

const certificatesOf = ({ bmc }: Config, log: Log): DeviceTools =>
  bmc.acceptNewCertificateAfterFlash
    ? {
        acceptCertificate: ({ kind, id }, fingerprint) =>
          log.warn({ kind, id, fingerprint }, "a BMC shows a new certificate after its flash, which was accepted"),
      }
    : {};

function collectLoops({ metrics, db, clock, config }: EngineWiring, tail: JournalTail): void {
  metrics.collectWith(async () => {
    const { lagSeconds } = await measureChecks(db);
    return { millwright_condition_lag_seconds: [{ labels: {}, value: lagSeconds }] };
  });
  metrics.collectWith(collectFleet(db, config.fleet));
  metrics.collectWith(collectRackAdmission(db));
  metrics.collectWith(collectTokenAges({ db, clock, maxAge: config.auth.tokenMaxAge }));
  metrics.collectWith(collectSecretKeys(db));
  metrics.collectWith(collectUnsealed(db));
  metrics.collectWith(async () => ({ millwright_watchers: [{ labels: {}, value: tail.followers }] }));
}

const caCertificatesOf = ({ caFile }: Config["bmc"]) =>
  caFile === null ? {} : { caCertificates: readCaCertificates(caFile, "bmc.ca_file") };

const fakeOf = ({ provider: speed, fail: failures }: Config["fake"], clock: Clock) =>
  speed === "off" ? {} : { fake: { speed, failures, clock } };

function wireConditions(
  { db, log, clock, replica, config, metrics, things }: EngineWiring,
  around: Pick<CheckPlacesWiring, "hardware" | "targetsOf"> & { readonly bmcRestsFor: Duration },
): ConditionReconciler {
  return new ConditionReconciler({
    db,
    stores: storesOf(things),
    log,
    clock,
    owner: replica,
    interval: config.conditions.interval,
    rate: config.conditions.rate,
    observer: observeChecks(metrics),
    placesOf: wireCheckPlaces({ db, ...around }),
    bmcRestsFor: around.bmcRestsFor,
  });
}

const servedBy = ({ seededMedia, maas, allocator }: EngineWiring) => ({
  ...(seededMedia && { seededMedia }),
  ...(maas && { maas }),
  ...(allocator && { allocator }),
});

const notifying =
  (db: Database, nudgeAll: () => void): Loop =>
  async (signal) => {
    await db.listen("millwright", nudgeAll, signal); // from here on it lives, and heals, by itself
    if (!signal.aborted) await once(signal, "abort");
  };

/** What keeps the database in order, whatever there is to do. */
function upkeepLoops({ db, secrets, log, metrics, clock, replica, config, things, tokenUses: uses }: EngineWiring) {
  const { engine, auth } = config;
  const sealKey = openSealKey(db, secrets);
  return {
    sweep: (signal: AbortSignal) =>
      runSweep({ db, stores: storesOf(things), log, every: engine.sweepInterval }, signal),
    ...(uses && {
      tokens: (signal: AbortSignal) => runTokenUpkeep({ db, log, clock, uses, maxAge: auth.tokenMaxAge }, signal),
    }),
    secret_keys: (signal: AbortSignal) => runSecretKeys({ db, log, secrets, replica }, signal),
    journal_seals: (signal: AbortSignal) => runSealing({ db, log, clock, sealKey, metrics }, signal),
    retention: (signal: AbortSignal) => {
      const discovered = discoveredFor(config, storesOf(things));
      return runRetention({ ...{ db, log, sealKey, discovered }, ...keptFor(config) }, signal);
    },
  };
}

/** All loops of one replica, with the hardware below them. */
export function startEngine(wiring: EngineWiring): Engine {
  const { db, secrets, log, metrics, replica, config, runbooks, mayReach, clock, firmwareFiles, things } = wiring;
  const stores = storesOf(things);
  const observed = { clock, observer: observeDeviceCalls(metrics, log), ledger: createSignInLedger(db, secrets, log) };
  const gateway = createBmcGateway({ concurrency: config.bmc.perBmcConcurrency, ...observed });
  // A service answers for as many machines as it has in its care.
  const services = createBmcGateway({ concurrency: 16, queueLimit: 4_096, ...observed });
  const { plainHttp } = config.bmc;
  const redfish = { clock, gateway, mayReach, plainHttp, ...caCertificatesOf(config.bmc) };
  const racks = wiring.hardware?.racks ?? wireRackHardware(redfish, config);
  const hardware =
    wiring.hardware?.machines ??
    wireMachineHardware({
      ...redfish,
      services,
      netInstall: openInstallOrders({ db }),
      ipmi: config.ipmi,
      ...fakeOf(config.fake, clock),
    });
  const served = servedBy(wiring);
  const settings = { ...settingsOf(wiring), ...firmwareFiles, ...served, ...certificatesOf(config, log) };
  const starting = wireRunParts({
    db,
    secrets,
    clock,
    hardware,
    steps: serverSteps,
    runbooks,
    seedsAt: settings.seedsAt,
    ...served,
  });
  const tools: HandlerWiring = {
    ...{ db, secrets, clock },
    ...racks.tools,
    ...settings,
    runs: { hardware, steps: serverSteps, runbooks, starting, instance: replica, ...observeSteps(metrics, log) },
  };
  const controller = new Controller({
    db,
    stores,
    log,
    clock,
    owner: replica,
    inFlight: config.engine.concurrency,
    grace: config.engine.stopGrace,
    observer: countingRuns(metrics, countingMaintenance(metrics, observeEngine(metrics))),
    handlers: wireHandlers(tools, things),
  });
  const targetsOf = wireStepTargets({ db, secrets, runbooks });
  const conditions = wireConditions(wiring, { hardware, targetsOf, bmcRestsFor: settings.monitorEveryWithEvents });
  const deviceEvents = wireDeviceEvents({
    ...wiring,
    ...racks.tools,
    hardware,
    targetsOf,
    onWake: () => controller.nudge(),
  });
  const tail = new JournalTail({ db, log, most: config.watch.most });
  collectLoops(wiring, tail);
  const beats = wiring.watch && new RestoreBeats({ db, log, watch: wiring.watch });
  const gate = new DrainGate();
  const nudgeAll = () => void [beats, controller, tail].forEach((loop) => void loop?.nudge());
  const loops = superviseLoops(
    {
      ...gate.guardAll({
        controller: (signal) => controller.run(signal),
        conditions: (signal) => conditions.run(signal),
        ...fleetLoops(wiring, starting),
        ...(config.monitor.events && { device_events: (signal: AbortSignal) => deviceEvents.run(signal) }),
      }),
      events: (signal) => tail.run(signal),
      notifications: notifying(db, nudgeAll),
      ...(beats && { restore: (signal: AbortSignal) => beats.run(signal) }),
      ...upkeepLoops(wiring),
    },
    log,
  );
  return {
    events: tail,
    hardware,
    runs: { ...starting, readFirmware: wireReadFirmware(db, things, wireRunTargets(tools, things)) },
    rackLimits: settings.rackLimits,
    trouble: loops.trouble,
    drain: (isDraining) => gate.set(isDraining),
    async stop() {
      await loops.stop();
      await racks.close();
      await hardware.close();
      gateway.close();
      services.close();
    },
  };
}
