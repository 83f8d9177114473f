import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import {
  type LogChunk,
  MachineService,
  type Run,
  Run_Phase,
  RunService,
} from "../../contract/baremetal/v1/baremetal_pb.js";
import { MachineLifecycleService } from "../../contract/millwright/v1/machine_pb.js";
import { PlanCatalogService } from "../../contract/millwright/v1/plan_pb.js";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { createSeeds } from "../../src/api/rest/seeds.ts";
import type { Capability } from "../../src/capabilities/provider.ts";
import { Controller } from "../../src/engine/controller.ts";
import { JournalTail } from "../../src/engine/watch.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { hours, seconds } from "../../src/kernel/time/duration.ts";
import { SharedClock } from "../../src/kernel/time/shared-clock.ts";
import type { MachineSpec } from "../../src/lifecycles/machine/machine.ts";
import type { FakeProviderOptions } from "../../src/providers/fake/fake-provider.ts";
import { createRedfishShelfProvider } from "../../src/providers/redfish/shelf/redfish-shelf-provider.ts";
import { seedWriter } from "../../src/providers/seeds/seed.ts";
import { createSeededMedia } from "../../src/providers/seeds/seeded-media.ts";
import { createBmcGateway } from "../../src/providers/transport/bmc-gateway.ts";
import type { AnyStep } from "../../src/runs/model/step.ts";
import { serverSteps } from "../../src/runs/steps/index.ts";
import type { Runbooks } from "../../src/runs/steps/scripts/runbooks.ts";
import { allWorkflows } from "../../src/runs/workflows/index.ts";
import type { Workflows } from "../../src/runs/workflows/workflow.ts";
import type { ServiceDeps } from "../../src/services/call/deps.ts";
import { createCluster } from "../../src/services/catalog/clusters.ts";
import { createImage } from "../../src/services/catalog/images.ts";
import { openInstallOrders } from "../../src/services/install/orders.ts";
import type { SeedScope } from "../../src/services/install/seeds.ts";
import { setMachineCredentials } from "../../src/services/machine/credentials.ts";
import { registerMachine } from "../../src/services/machine/machines.ts";
import type { RunDeps } from "../../src/services/run/deps.ts";
import { openSecretStore } from "../../src/store/access/secrets.ts";
import { wireClusterGate } from "../../src/wiring/cluster-gate.ts";
import { type HandlerWiring, wireHandlers, wireRunTargets } from "../../src/wiring/handlers.ts";
import { openReportDesk } from "../../src/wiring/installs.ts";
import { wireMachineHardware } from "../../src/wiring/machine-hardware.ts";
import { wireReadFirmware } from "../../src/wiring/rack/read-firmware.ts";
import { registerRoutes } from "../../src/wiring/routes.ts";
import { type RunParts, wireRunParts } from "../../src/wiring/run-deps.ts";
import { loadRunbooks } from "../../src/wiring/runbook-files.ts";
import { createSignInLedger } from "../../src/wiring/sign-in-ledger.ts";
import { allStores, allThings } from "../../src/wiring/things/all-things.ts";
import { startApi } from "../integration/api/api-under-test.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { eventually } from "./eventually.ts";
import type { MachineTruth, SimulatedMachine } from "./machine-site.ts";

export const tester = { name: "tester", roles: ["admin"], address: null } as const;

/** The services of machines and runs over gRPC, on a database of their own. */
export interface RunSurface extends TestDatabase {
  readonly deps: ServiceDeps;
  /** What its runs are started with. */
  readonly runDeps: RunDeps;
  readonly runs: Client<typeof RunService>;
  readonly machines: Client<typeof MachineService>;
  readonly lifecycle: Client<typeof MachineLifecycleService>;
  readonly plans: Client<typeof PlanCatalogService>;
  client<S extends DescService>(service: S): Client<S>;
  /** For whoever makes clients of their own, such as the command line. */
  readonly transport: Transport;
  /** A machine on record, with credentials, and endpoints at which nobody answers. */
  addMachine(id: string, provider?: string): Promise<string>;
  /** Changes what is named, and leaves the rest of its spec as it is. */
  changeSpec(machineId: string, change: Readonly<Record<string, string>>): Promise<void>;
  /** Waits until the run has ended, and returns it. */
  ended(runId: string, within?: number): Promise<Run>;
  /** All that was logged so far. */
  logs(runId: string): Promise<LogChunk[]>;
  close(): Promise<void>;
}

export interface RunSurfaceOptions {
  /** Absent: what the real providers can. */
  readonly capabilitiesOf?: (spec: MachineSpec) => ReadonlySet<Capability>;
  /** Machines of provider `fake`. Absent: there are none. */
  readonly fake?: FakeProviderOptions;
  /** How many things the controller looks at at a time. Absent: as many as usual. */
  readonly inFlight?: number;
  /** Carries runs out. */
  readonly controller?: boolean;
  /** Absent: the real ones. */
  readonly steps?: ReadonlyMap<string, AnyStep>;
  /** Absent: those of the server. */
  readonly workflows?: Workflows;
  /** Absent: the shipped ones. */
  readonly runbooks?: Runbooks;
  /** Whether kubeconfigs are read and tried, as servers do. Absent: they are kept as they are given. */
  readonly triesClusters?: boolean;
  /** What handlers are given besides. */
  readonly tools?: Partial<HandlerWiring>;
  /** Where the agents of fleet nodes reach the server. Absent: nobody knows. */
  readonly fleetServer?: string;
  /** Whether seeds are served. Absent: nobody knows where BMCs would fetch them. */
  readonly servesSeeds?: boolean;
}

/** Where nobody answers: a run is not even started on a machine of which it is not on record where it is reached. */
const endpointsOf = (id: string, provider: string) => ({
  sshEndpoint: `${id}.example`,
  bmcEndpoint: provider === "ironic" ? `https://ironic.example/v1/nodes/${id}` : `${id}.bmc.example`,
});

/** Nobody signs in with them. */
const ANY_CREDENTIALS = {
  bmcUsername: "root",
  bmcPassword: "unused",
  sshUsername: "root",
  sshPrivateKey: "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n",
} as const;

export async function startRunSurface(options: RunSurfaceOptions = {}): Promise<RunSurface> {
  const directory = mkdtempSync(join(tmpdir(), "millwright-runs-"));
  const database = await createTestDatabase();
  const { db } = database;
  const secrets = openSecretStore({ keyFile: join(directory, "secret.key") });
  const steps = options.steps ?? serverSteps;
  const workflows = options.workflows ?? allWorkflows;
  const runbooks = options.runbooks ?? loadRunbooks();
  const gateway = createBmcGateway({ ledger: createSignInLedger(db, secrets, silentLog) });
  const hardware = wireMachineHardware({
    gateway,
    mayReach: () => true,
    netInstall: openInstallOrders({ db }),
    ...(options.fake && { fake: options.fake }),
  });
  const { clusterAccess } = hardware;
  const clusterGate = options.triesClusters && clusterAccess ? wireClusterGate(clusterAccess) : undefined;
  const seededMedia = createSeededMedia({ mayReach: () => true });
  const deps: ServiceDeps = {
    ...{ db, stores: allStores, secrets, seedWriter, seededMedia, maxFindByIds: 100 },
    ...(clusterGate && { clusterGate }),
    ...(options.fleetServer !== undefined && { fleetServer: options.fleetServer }),
  };
  const seeds = options.servesSeeds === true ? await serveSeedsApart(deps) : undefined;
  const seedsAt = seeds?.httpUrl ?? null;
  const installersAt = seeds?.bootUrl ?? null;
  const starting: RunParts = {
    ...wireRunParts({ db, secrets, hardware, steps, runbooks, seedsAt, seededMedia }),
    workflows,
    ...(options.capabilitiesOf && { capabilitiesOf: options.capabilitiesOf }),
    ...(!clusterGate && { clusterProbes: null }),
  };
  const provider = createRedfishShelfProvider({ gateway });
  const stop = new AbortController();
  const events = new JournalTail({ db, log: silentLog });
  const tools: HandlerWiring = {
    db,
    secrets,
    provider,
    monitorEvery: hours(1),
    exploreEvery: hours(1),
    seedsAt,
    installersAt,
    seededMedia,
    runs: { hardware, steps, workflows, runbooks, starting, instance: "bench" },
    ...options.tools,
  };
  const callersRuns: RunParts = {
    ...starting,
    // Tests change what devices show, and look again at once.
    readFirmware: wireReadFirmware(db, allThings, wireRunTargets(tools), seconds(0)),
  };
  const controller = new Controller({
    db,
    stores: allStores,
    log: silentLog,
    ...(options.inFlight !== undefined && { inFlight: options.inFlight }),
    handlers: wireHandlers(tools),
  });
  const loops = [
    db.listen(
      "millwright",
      () => {
        controller.nudge();
        events.nudge();
      },
      stop.signal,
    ),
    events.run(stop.signal),
    ...(options.controller === true ? [controller.run(stop.signal)] : []),
  ];
  const api = await startApi({
    routes: (router) =>
      registerRoutes(router, {
        services: deps,
        runs: callersRuns,
        events,
        system: {
          version: "1.2.3",
          commit: "",
          schema: "",
          startedAt: new Date(),
          replica: "bench",
          clock: new SharedClock(),
        },
        onTokenRevoked() {},
      }),
  });
  const transport = api.grpc();
  const runs = createClient(RunService, transport);
  const machines = createClient(MachineService, transport);
  return {
    ...database,
    deps,
    runDeps: { ...deps, ...callersRuns },
    runs,
    machines,
    lifecycle: createClient(MachineLifecycleService, transport),
    plans: createClient(PlanCatalogService, transport),
    client: (service) => createClient(service, transport),
    transport,
    async addMachine(id, machineProvider = "") {
      const spec = { provider: machineProvider, ...(machineProvider !== "fake" && endpointsOf(id, machineProvider)) };
      await machines.registerMachine({ machine: { machineId: id, spec } });
      if (machineProvider !== "fake") await setMachineCredentials(deps, tester, { machineId: id, ...ANY_CREDENTIALS });
      return id;
    },
    async changeSpec(machineId, change) {
      const machine = await machines.getMachine({ machineId });
      Object.assign(machine.spec ?? {}, change);
      await machines.updateMachine({ machine });
    },
    async ended(runId, within = 40_000) {
      let run: Run | undefined;
      return eventually(
        async () => {
          run = await runs.getRun({ runId });
          return run.phase > Run_Phase.RUNNING && run;
        },
        { what: `${runId} has ended`, within, seen: () => JSON.stringify(run, plain, 1) },
      );
    },
    logs: (runId) => collect(runs.streamRunLogs({ runId, noFollow: true })),
    async close() {
      await api.close();
      await seeds?.close();
      stop.abort();
      await Promise.all(loops);
      await provider.close?.();
      await hardware.close();
      gateway.close();
      await database.drop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

interface SeedServing {
  readonly watch?: (app: FastifyInstance) => unknown;
  readonly scope?: SeedScope;
  /** Where installers report. Absent: where their seed was read. */
  readonly publicUrl?: string;
}

/** As servers do, for BMCs and installers. */
export const serveSeeds = (deps: ServiceDeps, { watch, scope, publicUrl }: SeedServing = {}) =>
  startApi({
    http: async (app) => {
      watch?.(app);
      const reports = openReportDesk(deps, { requireTokens: false });
      await app.register(
        createSeeds({
          services: deps,
          reports,
          publicUrl: publicUrl ?? null,
          ...(scope && { scope }),
          reportUnexpected: (cause) => {
            throw cause;
          },
        }),
      );
    },
  });

/** With a listener for BMCs, which knows media alone, and one for machines, which knows none. */
async function serveSeedsApart(deps: ServiceDeps) {
  const boot = await serveSeeds(deps, { scope: { nodes: true, runs: false } });
  const bmc = await serveSeeds(deps, { scope: { nodes: false, runs: true }, publicUrl: boot.httpUrl });
  return {
    httpUrl: bmc.httpUrl,
    bootUrl: boot.httpUrl,
    close: async () => {
      await Promise.all([boot.close(), bmc.close()]);
    },
  };
}

export async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

const plain = (_: string, value: unknown) => (typeof value === "bigint" ? Number(value) : value);

/** The same with a simulated rack of machines on record, and what the built-in plans name. */
export interface RunBench extends RunSurface {
  readonly simulator: Simulator;
  readonly simulated: readonly SimulatedMachine[];
  truth(id: string): Promise<MachineTruth>;
  control<T = unknown>(method: string, path: string, body?: unknown): Promise<T>;
  fault(rule: object): Promise<void>;
  /** The BMC of a machine is another from now on, and on record as its operator would have it. */
  takeOn(machineId: string, profile: string | readonly string[]): Promise<void>;
}

export async function startRunBench(
  options: { readonly speed?: number; readonly site?: string } & RunSurfaceOptions = {},
): Promise<RunBench> {
  const directory = mkdtempSync(join(tmpdir(), "millwright-run-site-"));
  const simulator = await startSimulator({
    dataDir: directory,
    seed: 7,
    speed: options.speed ?? 400,
    site: options.site ?? "racks=1",
  });
  const surface = await startRunSurface({ controller: true, triesClusters: true, ...options });
  const control = controlOf(simulator.controlUrl);
  const simulated = await putSiteOnRecord(surface.deps, control);
  return {
    ...surface,
    simulator,
    simulated,
    control,
    truth: (id) => control("GET", `/devices/${id}`),
    fault: (rule) => control("POST", "/faults", rule),
    async takeOn(machineId, profile) {
      await control("PUT", `/devices/${machineId}/profile`, { profile });
      const inventory = await control<readonly SimulatedMachine[]>("GET", "/inventory/machines");
      const bmcEndpoint = inventory.find(({ machine_id }) => machine_id === machineId)?.bmc_endpoint ?? "";
      await surface.changeSpec(machineId, { bmcEndpoint });
    },
    async close() {
      await surface.close();
      await simulator.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

export type Control = <T = unknown>(method: string, path: string, body?: unknown) => Promise<T>;

export const controlOf =
  (url: string): Control =>
  async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await fetch(new URL(path, url), {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  };

/** Machines, clusters and images of a simulated site, as its operator would put them on record. */
export async function putSiteOnRecord(deps: ServiceDeps, control: Control): Promise<readonly SimulatedMachine[]> {
  const simulated = await control<readonly SimulatedMachine[]>("GET", "/inventory/machines");
  const bastion = await control<{ endpoint: string; username: string; host_key: string }>("GET", "/bastion");
  const jump = { endpoint: bastion.endpoint, hostKey: bastion.host_key, username: bastion.username };
  for (const one of simulated) {
    const { os } = await control<MachineTruth>("GET", `/devices/${one.machine_id}`);
    await registerMachine(deps, tester, {
      id: one.machine_id,
      labels: {},
      spec: {
        ...NOTHING_ELSE,
        serial: one.serial,
        macAddresses: one.mac_addresses,
        bmcEndpoint: one.bmc_endpoint,
        sshEndpoint: one.ssh_endpoint,
        sshHostKey: os.host_key,
        jumpHosts: one.jump ? [jump] : [],
      },
    });
    await setMachineCredentials(deps, tester, {
      machineId: one.machine_id,
      bmcUsername: one.bmc_username,
      bmcPassword: one.bmc_password,
      sshUsername: one.ssh_username,
      sshPrivateKey: one.ssh_private_key,
    });
  }
  const clusters = await control<{ name: string; api_url: string; kubeconfig: string }[]>("GET", "/clusters");
  for (const { name, api_url, kubeconfig } of clusters)
    await createCluster(deps, tester, { name, apiUrl: deps.clusterGate ? "" : api_url, kubeconfig, skipProbe: true });
  const images = await control<{ ref: string; digest: string; served_at: string }[]>("GET", "/images");
  for (const { ref, digest, served_at: location } of images)
    await createImage(deps, tester, { name: ref, kind: "iso", location, digest, successProof: "" });
  return simulated;
}

export const NOTHING_ELSE = {
  provider: "",
  rack: "",
  slot: "",
  location: "",
  customerId: "",
  targetClusterRef: "",
  bmcProtocol: "",
  bmcTlsTrust: "",
} as const;
