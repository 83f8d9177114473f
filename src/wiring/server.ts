import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { createAuthentication } from "../api/auth/authentication.ts";
import { createFieldRoles } from "../api/auth/field-roles.ts";
import { createThingGuard, guardThingsOfCalls } from "../api/auth/thing-guard.ts";
import { createOperations } from "../api/rest/operations.ts";
import { createRestFrame } from "../api/transport/access/rest-frame.ts";
import { HealthSwitch, healthRoutes } from "../api/transport/health-service.ts";
import { createCallFrame } from "../api/transport/interceptors.ts";
import { reflectionRoutes } from "../api/transport/reflection.ts";
import { startApiServers } from "../api/transport/server.ts";
import type { SecretReferences } from "../capabilities/secrets/secret-references.ts";
import type { Build } from "../config/build.ts";
import { type Config, createAddressFilter, publicUrlsOf } from "../config.ts";
import { createFleetCollector } from "../engine/fleet-metrics.ts";
import { type PresenceOptions, ReplicaPresence } from "../engine/replica-presence.ts";
import { TokenUses } from "../engine/token-upkeep.ts";
import type { Log } from "../kernel/log.ts";
import { readingFor } from "../kernel/time/clock.ts";
import { seconds } from "../kernel/time/duration.ts";
import { SharedClock } from "../kernel/time/shared-clock.ts";
import { seedWriter } from "../providers/seeds/seed.ts";
import { createSeededMedia } from "../providers/seeds/seeded-media.ts";
import type { ServiceDeps } from "../services/call/deps.ts";
import { openAgentDesk } from "../services/fleet/agent/desk.ts";
import { sweepArtifacts } from "../services/rack-firmware/files.ts";
import { cancelActiveRuns, untilRunsEnded } from "../services/run/shutdown.ts";
import { verifySession } from "../services/system/sessions.ts";
import { verifyToken } from "../services/system/tokens.ts";
import { openSecretStore, type SecretStore } from "../store/access/secrets.ts";
import { bindCredentials } from "../store/device/bind-credentials.ts";
import { startEmbedded } from "../store/embedded/embedded.ts";
import * as work from "../store/lifecycle/work.ts";
import { awaitDatabase } from "../store/postgres/await-database.ts";
import { type Database, openDatabase, type Session } from "../store/postgres/database.ts";
import { askTime } from "../store/postgres/database-time.ts";
import { migrate } from "../store/postgres/migrate.ts";
import type { ReplicaOrders } from "../store/replica/replicas.ts";
import { RestoreWatch } from "../store/restore/restore-watch.ts";
import { keepScriptsOfActiveRuns } from "../store/run/script-texts.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { observeRpc } from "../telemetry/observers.ts";
import { startRefusals } from "./audit/refusals.ts";
import { wireClusterGate } from "./cluster-gate.ts";
import { type Engine, type EngineHardware, startEngine } from "./engine.ts";
import { wireAllocator } from "./fleet/allocator.ts";
import { bootRulesOf, bootTrustOf, discoveryGateOf, installRouteDeps } from "./installs.ts";
import { wireMaasGate } from "./maas-gate.ts";
import { wireFirmwareFiles } from "./rack/artifacts.ts";
import { refusingHeld } from "./restore/held-methods.ts";
import { registerRoutes, restRoutes } from "./routes.ts";
import { loadRunbooks, reloadRunbooks } from "./runbook-files.ts";
import { wireReferences } from "./secret-references.ts";
import { StopSequence } from "./stop-sequence.ts";
import { wireConsoleSessions } from "./surfaces/console-sessions.ts";
import { makeDataDir, writeEndpointsFile } from "./surfaces/endpoints-file.ts";
import { wireLimits } from "./surfaces/limits.ts";
import { wireListeners } from "./surfaces/listeners.ts";
import { readyChecks, withReadiness } from "./surfaces/ready-checks.ts";
import { followTls, openTlsFiles, type TlsFiles } from "./surfaces/tls-files.ts";
import { accessOf, allThings, storesOf } from "./things/all-things.ts";
import type { ThingParts } from "./things/thing.ts";

/** A list that takes longer is ended: its caller has to narrow it. */
const LONGEST_LIST = seconds(10);

export interface Server {
  readonly httpUrl: string;
  readonly grpcAddress: string;
  /** Of the listeners for machines that boot, and for BMCs; undefined where they have none of their own. */
  readonly bootUrl: string | undefined;
  readonly bmcUrl: string | undefined;
  readonly deps: ServiceDeps;
  /** The address of the console that signs its reader in once, as the bearer of the token. */
  signInLink(token: string): string;
  /** Reads certificates and the site's scripts again. What cannot be used is in the log, and what was used before stays. */
  reload(): void;
  /** Hands work over, answers what is in flight, and leaves nothing behind. May be called again. */
  stop(): Promise<void>;
  /** When there is no time left for that: has our own processes end by themselves. */
  abandon(): void;
}

export interface ServerOptions {
  readonly config: Config;
  readonly log: Log;
  readonly version: string;
  /** What it was made from. Absent: nobody knows. */
  readonly build?: Omit<Build, "version">;
  /** Has the log tell more or less; null: as the configuration says. Absent: nobody can. */
  readonly setLogLevel?: (level: string | null) => void;
  /** Ends a start that is still under way. */
  readonly signal: AbortSignal;
  /** The kinds of things that it knows. Absent: all that there are. */
  readonly things?: readonly ThingParts[];
  /** What stands in for real devices. Absent: they are reached over the network. */
  readonly hardware?: EngineHardware;
  /** Where simulated nodes reach the server; told once it is up. Absent: there are none. */
  readonly simulatedNodesAt?: { readonly url: string | null };
}

/** Brings up one replica: database, migrations, engine, surfaces. What was started is stopped again if a later part fails. */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { config, log, version, things = allThings } = options;
  const stores = storesOf(things);
  const stops = new StopSequence(log);
  try {
    const runbooks = loadRunbooks(config.scripts.directory); // before the database is migrated: one that is broken ends the start
    const tls = openTlsFiles(config, log);
    const replica = randomUUID();
    const { db, lists, watch } = await openStore(options, replica, stops);
    const clock = new SharedClock({ log });
    await askTime(db, readingFor(clock)); // from here on the engine's statements bring it along
    const tokenUses = new TokenUses(clock);
    const references = wireReferences(config, clock);
    const secrets = await openSecrets(config, db, { log, replica, references });
    const build: Build = { commit: "", schema: "", ...options.build, version };
    await keepScriptsOfActiveRuns(db, ({ ref, digest }) => runbooks.findVersion(ref, digest));
    const metrics = openMetrics({ db, lists, stores, build, clock, log });
    const orders: { carryOut?: (orders: ReplicaOrders) => void } = {};
    const onOrders = (given: ReplicaOrders) => orders.carryOut?.(given);
    const own = { id: replica, host: hostname(), ...build };
    const presence = startPresence({ db, log, clock, own, onOrders }, stops);
    const firmwareFiles = wireFirmwareFiles(config, { db, secrets, clock });
    const { artifacts, missingFiles } = firmwareFiles;
    stops.add("downloads of missing firmware files", async () => missingFiles.close());
    const seededMedia = createSeededMedia({ mayReach: createAddressFilter(config.install.imageNetworks) });
    const maas = wireMaasGate({ config, db, secrets, log, metrics, clock });
    stops.add("the calls to MAAS", async () => maas.close());
    const allocator = wireAllocator({ config, db, secrets, log, metrics, clock });
    if (allocator) stops.add("the calls to the allocator", async () => allocator.close());
    const engine = startEngine({
      ...{ db, secrets, log, metrics, replica, config, runbooks, clock, tokenUses, watch },
      ...{ firmwareFiles, seededMedia, maas },
      mayReach: createAddressFilter(config.bmc.allowedNetworks),
      ...(allocator && { allocator }),
      things,
      ...(options.hardware && { hardware: options.hardware }),
      ...(options.simulatedNodesAt && { simulatedNodesAt: options.simulatedNodesAt }),
    });
    stops.add("the engine", () => engine.stop());
    orders.carryOut = followOrders(options, engine);
    const { providers, clusterAccess } = engine.hardware;
    const deps: ServiceDeps = {
      db,
      lists,
      stores,
      secrets,
      references,
      maxFindByIds: config.maxFindByIds,
      providers,
      canErase: bootRulesOf(config).eraser !== null,
      ...(clusterAccess && { clusterGate: wireClusterGate(clusterAccess) }),
      maas,
      seedWriter,
      seededMedia,
      fleetServer: publicUrlsOf(config).fleet,
      artifacts,
      missingFiles,
      rackLimits: engine.rackLimits,
      tokenRules: tokenRulesOf(config),
      ...bootTrustOf(config),
      clock,
    };
    void sweepArtifacts(db, artifacts).catch((err: unknown) => log.warn({ err }, "firmware files were not swept"));
    // Once nobody can start runs here any more, and while the engine still ends them. A start that fails cancels nothing.
    let isUp = false;
    stops.add("the active runs", async () => {
      if (isUp && config.shutdown.runs === "cancel") await cancelRuns(deps, config, log);
    });
    const api = await startSurfaces(
      { config, log, build, deps, clock, metrics, replica, engine, things, tokenUses, presence, tls },
      stops,
    );
    const file = writeEndpointsFile(config.dataDir, { http: api.httpUrl, grpc: api.grpcAddress }, log);
    stops.add("the endpoints file", async () => file.remove());
    isUp = true;
    return {
      ...api,
      deps,
      reload() {
        tls?.refresh({ now: true });
        reloadRunbooks(runbooks, log);
      },
      stop: () => stops.run(),
      abandon: () => stops.abandon(),
    };
  } catch (error) {
    await stops.run();
    throw error;
  }
}

/** What operators want of this one replica. */
function followOrders({ log, setLogLevel }: ServerOptions, engine: Engine): (orders: ReplicaOrders) => void {
  let known: ReplicaOrders = { draining: false, logLevel: null };
  return (orders) => {
    if (orders.logLevel !== known.logLevel) setLogLevel?.(orders.logLevel);
    if (orders.draining !== known.draining)
      log.warn({}, orders.draining ? "drained: handing its work over" : "resumed: working again");
    engine.drain(orders.draining);
    known = orders;
  };
}

const tokenRulesOf = ({ auth }: Config) => ({
  maxAge: auth.tokenMaxAge,
  configured: auth.tokens.map(({ name }) => name),
});

async function cancelRuns(deps: ServiceDeps, { shutdown }: Config, log: Log): Promise<void> {
  const canceled = await cancelActiveRuns(deps);
  if (canceled.length > 0) log.info({ runs: canceled.length }, "canceling the active runs");
  const left = await untilRunsEnded(deps, canceled, shutdown.cancelWithin);
  if (left.length > 0)
    log.warn({ runs: left.length }, "runs were canceled, and have not ended yet; the next start ends them");
}

const CONNECTION_STATES = { inUse: "in_use", idle: "idle", waiting: "waiting", most: "most" } as const;

function openMetrics(about: {
  readonly db: Database;
  readonly lists: Database;
  readonly stores: ReturnType<typeof storesOf>;
  readonly build: Build;
  readonly clock: SharedClock;
  readonly log: Log;
}) {
  const { db, lists, stores, build, clock, log } = about;
  const metrics = createMetrics({
    processMetrics: true,
    onCollectFailure: (message) => log.warn({ message }, "fleet metrics could not be read"),
  });
  metrics.collectWith(createFleetCollector({ db, stores }));
  metrics.collectWith(async () => ({
    millwright_database_connections: Object.entries({ all: db, lists }).flatMap(([pool, { connections }]) =>
      (["inUse", "idle", "waiting", "most"] as const).map((state) => ({
        labels: { pool, state: CONNECTION_STATES[state] },
        value: connections()[state],
      })),
    ),
    millwright_build_info: [{ labels: { ...build }, value: 1 }],
    millwright_clock_ahead_seconds: [{ labels: {}, value: (clock.localIsAheadBy ?? 0) / 1_000 }],
  }));
  return metrics;
}

function startPresence(
  { clock, ...about }: Omit<PresenceOptions, "onTime"> & { readonly clock: SharedClock },
  stops: StopSequence,
): ReplicaPresence {
  const presence = new ReplicaPresence({ ...about, onTime: readingFor(clock) });
  const stopping = new AbortController();
  const running = presence.run(stopping.signal);
  stops.add("the presence of this replica", () => {
    stopping.abort();
    return running;
  });
  return presence;
}

async function openSecrets(
  config: Config,
  db: Database,
  { log, replica, references }: { readonly log: Log; readonly replica: string; readonly references: SecretReferences },
): Promise<SecretStore> {
  const keyFile = config.secretKeyFile ?? join(config.dataDir, "secret-key");
  const secrets = openSecretStore({ keyFile, references });
  await secrets.checkKeys(db);
  await secrets.followKeys(db, replica); // before it serves: nobody changes the key without asking whether it has the next one
  const bound = await bindCredentials(db);
  if (bound > 0) log.info({ credentials: bound }, "bound credentials to the addresses that are on record");
  return secrets;
}

async function openStore(
  { config, log, signal }: ServerOptions,
  replica: string,
  stops: StopSequence,
): Promise<Record<"db" | "lists", Database> & { readonly watch: RestoreWatch }> {
  let connection: Parameters<typeof openDatabase>[0] | null = config.database.url;
  const isOurs = connection === null;
  if (connection === null) {
    const embedded = await startEmbedded({ dataDir: config.dataDir, log, signal });
    stops.add(
      "the embedded database",
      () => embedded.stop(),
      () => process.kill(embedded.pid, "SIGINT"),
    );
    if (embedded.adopted)
      log.info({ pid: embedded.pid }, "found the database of an earlier run still at work, and took it over");
    connection = embedded.pgConfig;
  } else {
    makeDataDir(config.dataDir, log);
  }
  if (!isOurs) await awaitDatabase(connection, { log, signal });
  await migrate(connection, { log, signal });
  const { restored } = config.database;
  const watch = new RestoreWatch({ replica, directory: config.dataDir, log, restored });
  const check = (session: Session) => watch.check(session);
  const db = openDatabase(connection, { log, applicationName: "millwright", max: config.database.poolSize, check });
  stops.add("the database connections", () => db.close());
  const lists = openDatabase(connection, {
    ...{ log, applicationName: "millwright lists", max: Math.ceil(config.database.poolSize / 4) },
    statementTimeout: LONGEST_LIST,
    check,
  });
  stops.add("the database connections of lists", () => lists.close());
  await watch.beat(db); // before anything is done here: a restored backup is recognised by now, whoever restored it
  // Our own database has one owner at a time: the process that left leases behind is dead, so no one has to wait for them to end.
  if (isOurs) await work.freeLeases(db);
  return { db, lists, watch };
}

interface Surfaces {
  readonly config: Config;
  readonly log: Log;
  readonly build: Build;
  readonly deps: ServiceDeps;
  readonly clock: SharedClock;
  readonly metrics: ReturnType<typeof createMetrics>;
  readonly replica: string;
  readonly engine: Engine;
  readonly things: readonly ThingParts[];
  readonly tokenUses: TokenUses;
  readonly presence: ReplicaPresence;
  readonly tls: TlsFiles | undefined;
}

async function startSurfaces(surfaces: Surfaces, stops: StopSequence) {
  const { config, log, build, deps, clock, metrics, replica, engine, things, presence, tls } = surfaces;
  const access = accessOf(things);
  const { limits, throttle } = wireLimits(config, { log, metrics, clock });
  const {
    authenticate: signsIn,
    identify,
    issuer,
    tokens,
    sessions,
  } = createAuthentication({
    settings: config.auth,
    access,
    verify: (token) => verifyToken(deps, token),
    verifySession: (secret) => verifySession(deps, secret),
    clock,
    throttle,
    used: (id) => surfaces.tokenUses.note(id),
  });
  const authenticate = refusingHeld(signsIn, deps.db);
  const health = new HealthSwitch(false);
  const startedAt = clock.now();
  const checks = readyChecks({ deps, engine, clock, presence, tls });
  const { authenticate: signIn, reportUnexpected } = createRestFrame(authenticate, log, limits);
  const guardThings = createThingGuard(access, deps);
  const operations = createOperations({ build, metrics, authenticate: signIn, checks });
  const agents = openAgentDesk(deps, {
    rules: { taskLease: config.fleet.taskLease, longestWait: config.fleet.agentWait },
    ...{ events: engine.events, clock, log },
  });
  const refused = limits.ledger.refuse.bind(limits.ledger);
  const discovery = discoveryGateOf(config, { clock, refused });
  const installing = { ...installRouteDeps({ ...deps, agents }, config, discovery), runs: engine.runs };
  const refusals = startRefusals({ db: deps.db, log, clock, metrics });
  stops.add("the count of refused calls", () => refusals.stop());
  const frame = createCallFrame({
    ...{ log, authenticate, clock, quotas: limits.quotas },
    observe: observeRpc(metrics),
    acceptTraceparent: config.otel.acceptTraceparent,
    onAccess: refusals.onAccess,
  });
  const onTokenRevoked = (id: string) => {
    tokens.forget(id);
    sessions.forget(); // one of them, or those of a token
    frame.recheckStreams();
  };
  const rules = { lifetime: config.auth.sessionLifetime, most: config.auth.sessionsPerCredential };
  const signIns = wireConsoleSessions(
    { services: deps, identify, issuer, clock, log, rules, onRevoked: onTokenRevoked },
    limits,
  );
  const api = await startApiServers({
    ...wireListeners({
      config,
      tls: tls?.material,
      sessions: signIns.routes,
      rest: {
        ...{ version: build.version, access, guardThings, reportUnexpected },
        ...{ routes: restRoutes(installing, things), authenticate: signIn },
      },
      operations,
      seeds: { ...installing, reportUnexpected },
      reportUnexpected,
    }),
    ...frame,
    onAccess: refusals.onAccess,
    interceptors: [...frame.interceptors, createFieldRoles(access), guardThingsOfCalls(guardThings)],
    routes(router) {
      const methodDeps = {
        services: deps,
        runs: engine.runs,
        events: engine.events,
        system: { ...build, startedAt, replica, clock },
        onTokenRevoked,
      };
      registerRoutes(router, methodDeps, things);
      healthRoutes(router, health);
      reflectionRoutes(router);
    },
    log,
    limits,
  });
  followTls(tls, { api, metrics }, stops);
  stops.add(
    "the listeners",
    withReadiness({ checks, health, presence, drainDelay: config.shutdown.drainDelay }, [agents, api]),
  );
  const { httpUrl, grpcAddress, machineUrls } = api;
  return {
    ...{ httpUrl, grpcAddress, bootUrl: machineUrls["boot.listen"], bmcUrl: machineUrls["bmc.listen"] },
    signInLink: (token: string) => signIns.linkFor(token, httpUrl),
  };
}
