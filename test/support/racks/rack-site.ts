import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { RunService } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { type ExplainResponse, ExplainService } from "../../../contract/millwright/v1/explain_pb.js";
import { RackService } from "../../../contract/millwright/v1/rack_pb.js";
import { startSimulator } from "../../../simulator/simulator.ts";
import { loadConfig } from "../../../src/config.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import type { Duration } from "../../../src/kernel/time/duration.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { addExpectedPowerShelf } from "../../../src/services/expected-power-shelf/expected-power-shelves.ts";
import { createToken } from "../../../src/store/access/tokens.ts";
import type { Database } from "../../../src/store/postgres/database.ts";
import { listRacks, type RackRecord } from "../../../src/store/rack/racks.ts";
import { recordSimulatedMachines } from "../../../src/wiring/dev/dev-machines.ts";
import {
  expectSimulatedRacks,
  expectSimulatedSwitches,
  recordSimulatedFirmware,
} from "../../../src/wiring/dev/dev-racks.ts";
import { startServer } from "../../../src/wiring/server.ts";
import { createTestDatabase } from "../database.ts";
import { eventually } from "../eventually.ts";
import { checkCommand } from "../explain-bench.ts";
import { type Control, controlOf, tester } from "../run-bench.ts";

/** The truth about a device, from its person at the rack. */
export interface DeviceTruth {
  readonly power: string;
  readonly components: readonly { readonly id: string; readonly version: string }[];
  readonly flashes: readonly { readonly component: string; readonly to: string; readonly outcome: string }[];
}

/** A rack of the site: how many of each, and what its trays are like. */
export interface TinyRack {
  readonly id: string;
  readonly trays?: number;
  readonly switches?: number;
  readonly profile?: string | readonly string[];
  /** Broken from the start: nobody waits until this rack is ready. */
  readonly broken?: object;
}

/** Simulated racks of few devices, and a whole server with all its loops that looks after them. */
export interface RackSite {
  readonly db: Database;
  readonly deps: ServiceDeps;
  /** For the command line. */
  readonly transport: Transport;
  readonly racks: Client<typeof RackService>;
  readonly runs: Client<typeof RunService>;
  readonly control: Control;
  rack(id: string): Promise<RackRecord>;
  /** Waits until the rack is in the state, and returns it. */
  until(id: string, state: string, within?: number): Promise<RackRecord>;
  /** The time of all that the active runs on the thing are at is over in a second. */
  letTimePass(kind: string, id: string): Promise<void>;
  /** Explains, and checks that the command line would understand all that is suggested. */
  explain(kind: string, id: string): Promise<ExplainResponse>;
  truth(device: string): Promise<DeviceTruth>;
  /** Breaks something; the answer mends it again. */
  break(rule: object): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

interface ShelfRow {
  readonly bmc_mac_address: string;
  readonly bmc_username: string;
  readonly bmc_password: string;
  readonly shelf_serial_number: string;
  readonly bmc_ip_address: string;
  readonly rack_id: string;
  readonly metadata: { readonly name: string };
}

async function expectShelves(deps: ServiceDeps, control: Control): Promise<void> {
  for (const row of await control<readonly ShelfRow[]>("GET", "/inventory"))
    await addExpectedPowerShelf(deps, tester, {
      bmcMac: row.bmc_mac_address,
      bmcUsername: row.bmc_username,
      bmcPassword: row.bmc_password,
      serial: row.shelf_serial_number,
      bmcEndpoint: row.bmc_ip_address,
      rackId: row.rack_id,
      metadata: { name: row.metadata.name, description: "", labels: {} },
    });
}

/** All racks are ready: the devices came with the default firmware, so that nothing was written to them. */
export async function startRackSite(options: {
  readonly racks: readonly TinyRack[];
  readonly speed: number;
  readonly flashDeadline: Duration;
}): Promise<RackSite> {
  const directory = mkdtempSync(join(tmpdir(), "millwright-racks-"));
  const file = join(directory, "site.json");
  const racks = options.racks.map(({ id, trays = 1, switches = 0, profile }) => ({
    ...{ id, layout: "liteon", machines: trays, switches, shelves: 1 },
    ...(profile !== undefined && { profile }),
  }));
  writeFileSync(file, JSON.stringify({ racks }));
  const simulator = await startSimulator({
    dataDir: join(directory, "sim"),
    seed: 3,
    speed: options.speed,
    site: file,
  });
  const control = controlOf(simulator.controlUrl);
  const database = await createTestDatabase();
  const { db } = database;
  const env = {
    MILLWRIGHT_DATABASE_URL: database.url,
    MILLWRIGHT_DATA_DIR: join(directory, "server"),
    MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:0",
    MILLWRIGHT_GRPC_LISTEN: "127.0.0.1:0",
    MILLWRIGHT_EXPLORER_INTERVAL: "1s",
    MILLWRIGHT_CONDITIONS_INTERVAL: "2s",
    MILLWRIGHT_MONITOR_INTERVAL: "1h",
    MILLWRIGHT_MONITOR_EVENTS: "false",
  };
  const { config } = loadConfig({ env, argv: [], profile: "dev" });
  const server = await startServer({
    config: {
      ...config,
      rack: { ...config.rack, flashDeadline: options.flashDeadline },
      bmc: { ...config.bmc, acceptNewCertificateAfterFlash: false }, // as servers do that are not for development
    },
    log: silentLog,
    version: "1.2.3",
    signal: new AbortController().signal,
  });
  const { deps } = server;
  for (const { broken } of options.racks) if (broken !== undefined) await control("POST", "/faults", broken);
  await recordSimulatedFirmware(deps, tester, simulator.controlUrl);
  await expectShelves(deps, control);
  await expectSimulatedSwitches(deps, tester, simulator.controlUrl);
  await recordSimulatedMachines(deps, tester, simulator.controlUrl);
  await expectSimulatedRacks(deps, tester, simulator.controlUrl);

  const { token } = await createToken(db, { name: "tester", roles: ["admin"], createdBy: "test" });
  const bearing: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
  const transport = createGrpcTransport({ baseUrl: `http://${server.grpcAddress}`, interceptors: [bearing] });
  const explaining = createClient(ExplainService, transport);
  const rack = async (id: string): Promise<RackRecord> => {
    const [found] = await listRacks(db, { ids: [id] });
    if (!found) throw new Error(`there is no rack ${id}`);
    return found;
  };
  const until = (id: string, state: string, within = 60_000) =>
    eventually(
      async () => {
        const found = await rack(id);
        return found.state.name === state && found;
      },
      { what: `rack ${id} is ${state}`, seen: async () => JSON.stringify(await rack(id), null, 1), within },
    );
  const whole = options.racks.filter(({ broken }) => broken === undefined);
  await Promise.all(whole.map(({ id }) => until(id, "ready", 120_000)));
  return {
    db,
    deps,
    transport,
    racks: createClient(RackService, transport),
    runs: createClient(RunService, transport),
    control,
    rack,
    until,
    async letTimePass(kind, id) {
      await db.query(
        `update runs set plan = jsonb_set(plan, '{steps}',
           (select jsonb_agg(step || '{"timeoutSeconds": 1}') from jsonb_array_elements(plan -> 'steps') as step))
          where target_kind = $1 and target_id = $2 and state = 'RUNNING'`,
        [kind, id],
      );
    },
    async explain(kind, id) {
      const explanation = await explaining.explain({ kind, id });
      for (const { command } of explanation.nextCommands) await checkCommand(command);
      return explanation;
    },
    truth: (device) => control("GET", `/devices/${device}`),
    async break(rule) {
      const { id } = await control<{ id: string }>("POST", "/faults", rule);
      return () => control("DELETE", `/faults/${id}`);
    },
    async close() {
      await server.stop();
      await simulator.close();
      await database.drop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
