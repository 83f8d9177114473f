import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import {
  adminToken,
  expectInventory,
  type ServerProcess,
  startServerProcess,
} from "../support/processes/server-process.ts";
import { type SimulatorProcess, startSimulatorProcess } from "../support/processes/simulator-process.ts";
import { endsOf, isDone, journalOf, untilShelves } from "../support/shelf-records.ts";

/** The promise. Leases end after 22 s; the survivor has the rest to notice. */
const TAKEN_OVER_WITHIN = 30_000;

let bench: ProcessBench;
let database: TestDatabase;
let simulator: SimulatorProcess;
let replicas: readonly [ServerProcess, ServerProcess];
let token: string;

beforeEach(async () => {
  bench = openProcessBench();
  database = await createTestDatabase({ empty: true });
  // Slow enough to be caught in the act: a shelf takes two seconds to obey.
  simulator = await startSimulatorProcess(bench, { site: "racks=2", speed: 2.5 });
  replicas = await Promise.all([startReplica("one"), startReplica("two")]);
  token = await adminToken(database);
  await expectInventory(replicas[0], token, await simulator.inventory());
  await untilShelves(database, (all) => all.length === 16 && all.every(({ state }) => state.name === "ready"), {
    what: "all 16 shelves are ready",
    transcript,
  });
}, 90_000);

afterEach(async () => {
  await bench.close();
  await database.drop();
});

const startReplica = (name: string) =>
  startServerProcess(bench, {
    command: "serve",
    name,
    databaseUrl: database.url,
    env: {
      MILLWRIGHT_SECRET_KEY_FILE: join(bench.directory, "secret-key"),
      MILLWRIGHT_MONITOR_INTERVAL: "1s",
      // A few at a time each, so that neither can take everything.
      MILLWRIGHT_ENGINE_CONCURRENCY: "6",
    },
  });

const transcript = () => replicas.map(({ process }) => process.transcript()).join("\n");

const ids = async () => (await database.db.query<{ id: string }>("select id from power_shelves")).map(({ id }) => id);

async function request(replica: ServerProcess, power: "on" | "off"): Promise<void> {
  const operation = `POWER_SHELF_MAINTENANCE_OPERATION_POWER_${power.toUpperCase()}`;
  const powerShelfIds = (await ids()).map((id) => ({ id }));
  await replica.ask("forge.Forge/SetPowerShelfMaintenance", { powerShelfIds, operation }, token);
}

const allDone = (power: "on" | "off") =>
  untilShelves(database, (all) => all.every((shelf) => isDone(shelf, power)), {
    what: `all shelves are ready and ${power}`,
    transcript,
  });

const replicaId = async (replica: ServerProcess): Promise<string> =>
  (await replica.ask<{ replicaId: string }>("millwright.v1.SystemService/GetSystem", {}, token)).replicaId;

/** Until it is at work on shelves in maintenance, and so has something to lose. */
const hasMaintenanceInHand = (owner: string) =>
  eventually(
    async () =>
      (
        await database.db.query(
          `select 1 from work w join power_shelves s on s.id = w.id where w.lease_owner = $1 and s.state = 'maintenance'`,
          [owner],
        )
      ).length > 0,
    { what: `${owner} works on a shelf in maintenance`, seen: transcript },
  );

/** Passes of handlers that this replica made. */
async function handledBy(replica: ServerProcess): Promise<number> {
  const { text } = await replica.get("/metrics", token);
  return [...text.matchAll(/^millwright_handler_seconds_count\{.*\} (\d+)$/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
}

async function commandsHeard(): Promise<{ on: number; off: number }[]> {
  return (await simulator.details()).map(({ effects }) => ({
    on: effects.power_on_commands,
    off: effects.power_off_commands,
  }));
}

const sixteenTimes = <T>(value: T): T[] => Array.from({ length: 16 }, () => value);

async function expectEveryRequestCompletedOnce(): Promise<void> {
  for (const id of await ids()) {
    const journal = await journalOf(database, id);
    for (const { data } of journal.filter(({ type }) => type === "requested"))
      expect(endsOf(journal, String(data.request_id)), `${id}: ${JSON.stringify(data)}`).toEqual(["completed"]);
  }
}

test("two replicas started at once on an empty database share the work, and a killed one's share is taken over", async () => {
  const [survivor, victim] = replicas;
  for (const replica of replicas) {
    const worked = () => handledBy(replica);
    await eventually(async () => (await worked()) > 0, { what: "this replica does its share", seen: transcript });
  }
  const owner = await replicaId(victim);
  await request(survivor, "off");
  await hasMaintenanceInHand(owner);
  victim.process.signal("SIGKILL");
  await victim.process.exited;
  const held = "select 1 from work where lease_owner = $1";
  await eventually(async () => (await database.db.query(held, [owner])).length === 0, {
    what: "nothing is the dead replica's any more",
    within: TAKEN_OVER_WITHIN,
    seen: transcript,
  });
  await allDone("off");
  expect(await commandsHeard()).toEqual(sixteenTimes({ on: 0, off: 1 }));
  await expectEveryRequestCompletedOnce();
}, 120_000);
