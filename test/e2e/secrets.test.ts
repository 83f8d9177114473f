import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { adminToken, type ServerProcess, startServerProcess } from "../support/processes/server-process.ts";
import { type SimulatorProcess, startSimulatorProcess } from "../support/processes/simulator-process.ts";
import { untilShelves } from "../support/shelf-records.ts";

const USER = "root";
/** The password that opens the first shelf and, being wrong there, not the second. */
const CANARY = "Canary7-jrK2vQ9x";
/** As it is, and as it would look in a header, a URL or a dump. */
const SIGNS = [
  CANARY,
  CANARY.slice(7),
  Buffer.from(CANARY).toString("base64").replace(/=+$/, ""),
  Buffer.from(`${USER}:${CANARY}`).toString("base64").replace(/=+$/, ""),
  Buffer.from(CANARY).toString("hex"),
];

let bench: ProcessBench;
let database: TestDatabase;
let simulator: SimulatorProcess;
let server: ServerProcess;
let token: string;
/** Everything that was answered, word for word. */
let answers: string[];

beforeEach(async () => {
  bench = openProcessBench();
  database = await createTestDatabase();
  token = await adminToken(database);
  const site = join(bench.directory, "site.json");
  const shelves = [
    { id: "opened", username: USER, password: CANARY },
    { id: "closed", username: USER, password: "another" },
  ];
  writeFileSync(site, JSON.stringify({ racks: [{ id: "rack-1", shelves }] }));
  simulator = await startSimulatorProcess(bench, { site, speed: 100 });
  server = await startServerProcess(bench, {
    command: "serve",
    databaseUrl: database.url,
    env: {
      MILLWRIGHT_LOG_LEVEL: "trace",
      MILLWRIGHT_MONITOR_INTERVAL: "1s",
      MILLWRIGHT_MONITOR_EVENTS_INTERVAL: "1s", // that a password opens nothing any more is told by no event
    },
  });
  answers = [];
});
afterEach(async () => {
  await bench.close();
  await database.drop();
});

async function call(method: string, body: unknown): Promise<number> {
  const { status, text, headers } = await server.call(method, body, token);
  answers.push(text, JSON.stringify([...headers]));
  return status;
}

const foundIn = (text: string) => SIGNS.filter((sign) => text.includes(sign));

async function tables(): Promise<Map<string, string>> {
  const names = await database.db.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`,
  );
  const contents = new Map<string, string>();
  for (const { name } of names) {
    const rows = await database.db.query<{ row: string }>(`select to_jsonb(t)::text as row from "${name}" t`);
    contents.set(name, rows.map(({ row }) => row).join("\n"));
  }
  return contents;
}

test("a password given with the expected inventory is found nowhere outside the secret store", async () => {
  const [opened, closed] = await simulator.inventory();
  if (!opened || !closed) throw new Error("the site has two shelves");
  const expected = (row: typeof opened) => ({ ...row, rack_id: { id: row.rack_id }, bmc_password: CANARY });
  // Refused, accepted, accepted again, replaced, and wrong at the device.
  expect(await call("forge.Forge/AddExpectedPowerShelf", { ...expected(opened), bmc_mac_address: "zz" })).toBe(400);
  expect(await call("forge.Forge/AddExpectedPowerShelf", { ...expected(opened), bmc_pasword: CANARY })).toBe(400);
  expect(await call("forge.Forge/AddExpectedPowerShelf", expected(opened))).toBe(200);
  expect(await call("forge.Forge/AddExpectedPowerShelf", expected(opened))).toBe(409);
  expect(await call("forge.Forge/AddExpectedPowerShelf", expected(closed))).toBe(200);
  expect(await call("forge.Forge/UpdateExpectedPowerShelf", expected(closed))).toBe(200);
  const [shelf] = await untilShelves(database, (all) => all.some(({ state }) => state.name === "ready"), {
    what: "the shelf that the password opens is ready",
    transcript: server.process.transcript,
  });
  await eventually(
    async () => {
      await call("millwright.v1.PowerShelfService/ListExpectedPowerShelves", {});
      return answers.some((text) => text.includes("EXPLORE_STATE_WRONG_CREDENTIALS"));
    },
    { what: "the other one is found closed", seen: server.process.transcript },
  );
  // Work on it, and trouble with it.
  const powerShelfIds = [{ id: shelf?.id }];
  const operation = "POWER_SHELF_MAINTENANCE_OPERATION_POWER_OFF";
  await simulator.call("POST", "/faults", { device: "opened", fault: { type: "status", status: 500 }, times: 3 });
  expect(await call("forge.Forge/SetPowerShelfMaintenance", { powerShelfIds, operation })).toBe(200);
  await untilShelves(database, (all) => all[0]?.facts.powerState === "off" && all[0].state.name === "ready", {
    what: "the shelf is off",
    transcript: server.process.transcript,
  });
  await simulator.call("POST", "/faults", { device: "opened", fault: { type: "wrong_credentials" } });
  await untilShelves(database, (all) => (all[0]?.failures ?? 0) > 0, {
    what: "the shelf no longer lets us in",
    transcript: server.process.transcript,
  });
  for (const [method, body] of [
    ["forge.Forge/GetAllExpectedPowerShelves", {}],
    ["forge.Forge/GetExpectedPowerShelf", { bmcMacAddress: opened.bmc_mac_address }],
    ["forge.Forge/GetAllExpectedPowerShelvesLinked", {}],
    ["forge.Forge/FindPowerShelves", {}],
    ["forge.Forge/FindPowerShelfStateHistories", { powerShelfIds }],
    ["millwright.v1.PowerShelfService/GetPowerShelf", { id: shelf?.id }],
    ["millwright.v1.HistoryService/ListHistory", { kind: "power_shelf", id: shelf?.id }],
  ] as const)
    expect(await call(method, body), `${method}: ${answers.at(-2)}`).toBe(200);
  const metrics = await server.get("/metrics", token);
  expect(metrics.status).toBe(200);

  await eventually(async () => server.process.stderr().includes('"level":"debug",'), {
    what: "debug lines are logged",
    seen: server.process.transcript,
  });
  expect(foundIn(server.process.transcript())).toEqual([]);
  expect(foundIn(answers.join("\n"))).toEqual([]);
  expect(foundIn(metrics.text)).toEqual([]);
  const contents = await tables();
  expect([...contents.keys()]).toEqual(expect.arrayContaining(["journal", "power_shelves", "secrets", "work"]));
  expect(contents.get("secrets")).toContain("bmc/"); // it is kept, and encrypted
  for (const [name, text] of contents) expect(foundIn(text), `table ${name}`).toEqual([]);
  for (const file of readdirSync(server.dataDir, { withFileTypes: true }))
    if (file.isFile()) expect(foundIn(readFileSync(join(server.dataDir, file.name), "latin1")), file.name).toEqual([]);
}, 90_000);
