import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { Controller } from "../../src/engine/controller.ts";
import { type Log, silentLog } from "../../src/kernel/log.ts";
import { type Duration, milliseconds, seconds } from "../../src/kernel/time/duration.ts";
import { createRedfishShelfProvider } from "../../src/providers/redfish/shelf/redfish-shelf-provider.ts";
import { createBmcGateway } from "../../src/providers/transport/bmc-gateway.ts";
import type { ServiceDeps } from "../../src/services/call/deps.ts";
import { addExpectedPowerShelf } from "../../src/services/expected-power-shelf/expected-power-shelves.ts";
import { openSecretStore } from "../../src/store/access/secrets.ts";
import { listPowerShelves, type PowerShelfRecord } from "../../src/store/power-shelf/power-shelves.ts";
import { wireHandlers } from "../../src/wiring/handlers.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";

/** A simulated datacentre, a database of its own and one controller: everything but the surfaces. */
export interface Datacentre extends TestDatabase {
  readonly simulator: Simulator;
  readonly deps: ServiceDeps;
  /** Puts the simulator's inventory on record, as an operator would. */
  expectAll(): Promise<void>;
  shelves(): Promise<PowerShelfRecord[]>;
  /** Calls the simulator's control API. */
  control<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** Waits for the condition, looking again after every event; fails after a while, with the shelves as they are. */
  until(condition: () => Promise<boolean>, most?: Duration): Promise<void>;
  close(): Promise<void>;
}

export const tester = { name: "tester", roles: ["admin"], address: null } as const;

export async function startDatacentre(options: {
  readonly site?: string;
  readonly speed?: number;
  readonly monitorEvery?: Duration;
  readonly log?: Log;
}): Promise<Datacentre> {
  const directory = mkdtempSync(join(tmpdir(), "millwright-dc-"));
  const database = await createTestDatabase();
  const { db } = database;
  const simulator = await startSimulator({
    dataDir: join(directory, "sim"),
    speed: options.speed ?? 50,
    seed: 1,
    site: options.site ?? "racks=1",
  });
  const secrets = openSecretStore({ keyFile: join(directory, "secret.key") });
  const gateway = createBmcGateway();
  const provider = createRedfishShelfProvider({ gateway });
  const stop = new AbortController();
  const controller = new Controller({
    db,
    stores: allStores,
    log: options.log ?? silentLog,
    handlers: wireHandlers({
      db,
      secrets,
      provider,
      monitorEvery: options.monitorEvery ?? seconds(1),
      exploreEvery: seconds(1),
    }),
  });
  const listening = db.listen("millwright", () => controller.nudge(), stop.signal);
  const running = controller.run(stop.signal);
  const deps: ServiceDeps = { db, stores: allStores, secrets, maxFindByIds: 100 };

  const control = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await fetch(new URL(path, simulator.controlUrl), {
      method,
      ...(body !== undefined && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  };
  const shelves = () => listPowerShelves(db);
  return {
    ...database,
    simulator,
    deps,
    shelves,
    control,
    async expectAll() {
      for (const row of await control<InventoryRow[]>("GET", "/inventory")) {
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
    },
    async until(condition, most = seconds(30)) {
      const deadline = Date.now() + most;
      const event = new AbortController();
      let wake = Promise.withResolvers<void>();
      const heard = db.listen("millwright", () => wake.resolve(), event.signal);
      try {
        while (!(await condition())) {
          if (Date.now() > deadline)
            throw new Error(`not so after ${most} ms: ${JSON.stringify(await shelves(), null, 1)}`);
          wake = Promise.withResolvers();
          await Promise.race([wake.promise, new Promise((resolve) => setTimeout(resolve, milliseconds(200)))]);
        }
      } finally {
        event.abort();
        await heard;
      }
    },
    async close() {
      stop.abort();
      await running;
      await listening;
      await provider.close?.();
      await simulator.close();
      await database.drop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

interface InventoryRow {
  bmc_mac_address: string;
  bmc_username: string;
  bmc_password: string;
  shelf_serial_number: string;
  bmc_ip_address: string;
  rack_id: string;
  metadata: { name: string };
}
