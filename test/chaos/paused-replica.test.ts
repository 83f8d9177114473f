import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { isPaused } from "../support/processes/process-table.ts";
import {
  adminToken,
  expectInventory,
  type ServerProcess,
  startServerProcess,
} from "../support/processes/server-process.ts";
import { type SimulatorProcess, startSimulatorProcess } from "../support/processes/simulator-process.ts";
import { endsOf, isDone, journalOf, untilShelves } from "../support/shelf-records.ts";

/**
 * A replica is paused (SIGSTOP) for longer than its leases while it powers a shelf off. Another one takes the work over and
 * ends it, and an operator then has the shelf powered on. Whatever the paused one still had in mind when it goes on must not
 * reach the device: the shelf would go off again.
 */
const PAUSED_AT = [
  "controller:loaded:power_shelf:maintenance", // it is about to look at the device, and then to command it
  "controller:loaded:power_shelf:maintenance@2", // the same, with its command already sent once
  "controller:handled:power_shelf:maintenance", // it has an outcome in hand
  "committer:inside:power_shelf:maintenance", // its transaction is open, and holds the shelf's locks
];
/** What is promised is 30 s; the rest is room for two busy cores. */
const TAKEN_OVER_WITHIN = 45_000;

let bench: ProcessBench;
let prepared: TestDatabase;
let simulator: SimulatorProcess;
let token: string;
/** Shelves that no test has had yet. */
let unused: { id: string; name: string }[];

const startReplica = (
  own: ProcessBench,
  name: string,
  database: TestDatabase,
  env: Readonly<Record<string, string>> = {},
) =>
  startServerProcess(own, {
    command: "serve",
    name,
    databaseUrl: database.url,
    env: {
      MILLWRIGHT_SECRET_KEY_FILE: join(bench.directory, "secret-key"),
      // No look but those that requests cause.
      MILLWRIGHT_MONITOR_INTERVAL: "1h",
      MILLWRIGHT_MONITOR_EVENTS: "false",
      ...env,
    },
  });

beforeAll(async () => {
  bench = openProcessBench();
  simulator = await startSimulatorProcess(bench, { site: "racks=1", speed: 5 });
  prepared = await createTestDatabase();
  token = await adminToken(prepared);
  const server = await startReplica(bench, "preparing", prepared);
  await expectInventory(server, token, await simulator.inventory());
  const ready = await untilShelves(
    prepared,
    (all) => all.length === 8 && all.every(({ state }) => state.name === "ready"),
    { what: "all shelves are ready", transcript: server.process.transcript },
  );
  unused = ready.map(({ id, name }) => ({ id, name }));
  server.process.signal("SIGTERM");
  await server.process.exited;
  await prepared.close();
});
afterAll(async () => {
  await bench.close();
  await prepared.drop();
});

const request = (server: ServerProcess, id: string, power: "ON" | "OFF") =>
  server.ask(
    "forge.Forge/SetPowerShelfMaintenance",
    { powerShelfIds: [{ id }], operation: `POWER_SHELF_MAINTENANCE_OPERATION_POWER_${power}` },
    token,
  );

describe("a replica paused beyond its leases at", { concurrent: true, timeout: 180_000 }, () => {
  test.for(PAUSED_AT)("%s does no harm when it goes on", async (failPoint, { onTestFinished }) => {
    const shelf = unused.shift();
    if (!shelf) throw new Error("there is no shelf left");
    const { id, name } = shelf;
    const own = openProcessBench();
    const database = await createTestDatabase({ clone: prepared });
    onTestFinished(async () => {
      await own.close();
      await database.drop();
    });
    const paused = await startReplica(own, "paused", database, { MILLWRIGHT_FAILPOINT: `stop=${failPoint}` });
    const answered = request(paused, id, "OFF").catch(() => undefined); // perhaps only when it goes on
    await eventually(async () => isPaused(paused.process.pid), {
      what: `it is paused at ${failPoint}`,
      seen: paused.process.transcript,
    });

    const other = await startReplica(own, "other", database);
    const until = (power: "on" | "off") =>
      untilShelves(database, (all) => all.some((shelf) => shelf.id === id && isDone(shelf, power)), {
        what: `the other replica has powered the shelf ${power}`,
        within: TAKEN_OVER_WITHIN,
        transcript: other.process.transcript,
      });
    await until("off");
    await request(other, id, "ON");
    await until("on");

    paused.process.signal("SIGCONT");
    await answered;
    await eventually(async () => (await paused.get("/readyz")).status === 200, {
      what: "it serves again",
      seen: paused.process.transcript,
    });
    paused.process.signal("SIGTERM"); // ends when everything that it had in hand has come to its end
    expect(await paused.process.exited, paused.process.transcript()).toEqual({ code: 0, signal: null });

    const { power, effects } = await simulator.device(name);
    expect({ power, effects }).toMatchObject({
      power: "on",
      effects: { power_off_commands: 1, power_on_commands: 1, power_changes: 2 },
    });
    const journal = await journalOf(database, id);
    const requests = journal.filter(({ type }) => type === "requested").map(({ data }) => String(data.request_id));
    expect(requests.map((requestId) => endsOf(journal, requestId))).toEqual([["completed"], ["completed"]]);
    other.process.signal("SIGTERM");
    expect(await other.process.exited).toEqual({ code: 0, signal: null });
  });
});
