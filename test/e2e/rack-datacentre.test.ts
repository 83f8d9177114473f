import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { openProcessBench, type ProcessBench, ROOT } from "../support/processes/process-bench.ts";
import { devTokenOf, type ServerProcess, startServerProcess } from "../support/processes/server-process.ts";
import { controlSimulator, type SimulatorControl } from "../support/processes/simulator-process.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

/** The racks of `npm start`, and nothing done to them: what becomes of them by themselves, as a client sees it that we did not write. */
let bench: ProcessBench;
let database: TestDatabase;
let server: ServerProcess;
let simulator: SimulatorControl;
/** As they were when the server had just begun. */
let before: readonly Device[];
beforeAll(async () => {
  bench = openProcessBench();
  database = await createTestDatabase();
  server = await startServerProcess(bench, {
    command: "dev",
    databaseUrl: database.url,
    env: { MILLWRIGHT_SIM_SITE: "racks=2,joined=1,profile=mixed,spare=1", MILLWRIGHT_SIM_SPEED: "20" },
  });
  simulator = controlSimulator(/simulator control\s+(\S+)/.exec(server.process.stdout())?.[1] ?? "");
  before = await readDevices();
});
afterAll(async () => {
  await bench.close();
  await database.drop();
});

/** Debian puts its modules where only its own Python looks, which need not be the first on PATH. */
const python = ["/usr/bin/python3", "python3"].find(
  (candidate) => spawnSync(candidate, ["-c", "import grpc, google.protobuf"]).status === 0,
);

const hasSushy = python !== undefined && spawnSync(python, ["-c", "import sushy"]).status === 0;

interface Seen {
  readonly racks: Readonly<Record<string, string>>;
  readonly histories: Readonly<Record<string, readonly string[]>>;
}

async function watchRacks(seconds: number): Promise<Seen> {
  const script = join(import.meta.dirname, "third-party", "racks_ready.py");
  const args = [script, server.grpcAddress, devTokenOf(server), String(seconds)];
  const watching = bench.start({ command: python ?? "", args, env: { HOME: bench.directory } });
  expect(await watching.exited, watching.transcript() + server.process.transcript().slice(-20_000)).toEqual({
    code: 0,
    signal: null,
  });
  return JSON.parse(watching.stdout()) as Seen;
}

interface Flash {
  readonly component: string;
  readonly from: string;
  readonly to: string;
  readonly outcome: string;
}

interface Device {
  readonly id: string;
  readonly rack: string;
  readonly flashes: readonly Flash[];
  readonly effects: Readonly<Record<string, number>>;
  /** Of machines. */
  readonly os?: { readonly boot_id: string };
}

/** All devices as they say themselves. */
async function readDevices(): Promise<readonly Device[]> {
  const devices = await simulator.call<{ id: string }[]>("GET", "/devices");
  return Promise.all(devices.map(({ id }) => simulator.call<Device>("GET", `/devices/${id}`)));
}

/** What the devices' own logs say was written to them. */
const flashesIn = (devices: readonly Device[]): readonly string[] =>
  devices.flatMap(({ id, flashes }) =>
    flashes.map(({ component, from, to, outcome }) => `${id} ${component} ${from} ${to} ${outcome}`),
  );

/** Rack 2 is in use, but for its last tray. */
const inUseIn = (devices: readonly Device[]) =>
  devices.filter(({ id, rack }) => rack === "rack-2" && id !== "m-rack2-18").toSorted((a, b) => (a.id < b.id ? -1 : 1));

test("python3-grpcio sees both racks Ready within 90 s, and one flash a rack", async ({ skip }) => {
  if (python === undefined) skip("needs Debian's python3-grpcio and python3-protobuf");
  const { racks, histories } = await watchRacks(90);
  expect(racks).toEqual({ "rack-1": "Ready", "rack-2": "Ready" });
  for (const states of Object.values(histories))
    expect([...new Set(states)]).toEqual(["created", "discovering", "maintenance", "validating", "ready"]);
  const devices = await readDevices();
  expect(flashesIn(devices).toSorted()).toEqual([
    "m-rack1-18 bios U46-2.10 U46-2.20 completed",
    "m-rack2-18 bios U46-2.10 U46-2.20 completed",
  ]);
  const inUse = inUseIn(devices);
  expect(inUse).toHaveLength(17 + 9 + 8);
  for (const { id, effects } of inUse)
    expect(
      Object.entries(effects).filter(([, count]) => count > 0),
      `nothing was done to ${id}, which is in use or serves trays that are`,
    ).toEqual([]);
  const boots = (all: readonly Device[]) => inUseIn(all).flatMap(({ os }) => os?.boot_id ?? []);
  expect(boots(devices)).toEqual(boots(before));
}, 150_000);

test("python3-sushy reads the new version from the BMC of the tray that was upgraded", async ({ skip }) => {
  if (!hasSushy) skip("needs Debian's python3-sushy");
  const rows = await simulator.call<
    { machine_id: string; bmc_endpoint: string; bmc_username: string; bmc_password: string }[]
  >("GET", "/inventory/machines");
  const spare = rows.find(({ machine_id }) => machine_id === "m-rack1-18");
  const script = join(import.meta.dirname, "third-party", "firmware_versions.py");
  const args = [script, `https://${spare?.bmc_endpoint}`, spare?.bmc_username ?? "", spare?.bmc_password ?? ""];
  const reading = bench.start({ command: python ?? "", args, env: { HOME: bench.directory } });
  expect(await reading.exited, reading.transcript()).toEqual({ code: 0, signal: null });
  expect(JSON.parse(reading.stdout())).toEqual({ bmc: "1.09.2", bios: "U46-2.20" });
});

test("the site file of the simulator says what is on record", async () => {
  const file = join(bench.directory, "site.json");
  writeFileSync(file, JSON.stringify(await simulator.call("GET", "/inventory/site")));
  const comparing = bench.start({
    command: join(ROOT, "bin", "millwright"),
    args: ["site", "apply", "--file", file, "--dry-run", "--prune", "-o", "json"],
    env: { MILLWRIGHT_DATA_DIR: server.dataDir },
  });
  expect(await comparing.exited, comparing.transcript()).toEqual({ code: 0, signal: null });
  expect(JSON.parse(comparing.stdout())).toEqual([]);
});

test("a tray that moves to another rack shows discovering in the histories of both", async ({ skip }) => {
  if (python === undefined) skip("needs Debian's python3-grpcio and python3-protobuf");
  const move = bench.start({
    command: join(ROOT, "bin", "millwright"),
    args: ["machine", "update", "m-rack1-17", "--rack", "rack-2"],
    env: { MILLWRIGHT_DATA_DIR: server.dataDir },
  });
  expect(await move.exited, move.transcript()).toEqual({ code: 0, signal: null });
  const since = async () => {
    const { body } = await server.call<{ histories: Record<string, { records: { state: string }[] }> }>(
      "forge.Forge/FindRackStateHistories",
      { rackIds: [{ id: "rack-1" }, { id: "rack-2" }] },
      devTokenOf(server),
    );
    return ["rack-1", "rack-2"].map((id) => {
      const states = (body.histories[id]?.records ?? []).map(
        ({ state }) => (JSON.parse(state) as { state: string }).state,
      );
      return states.slice(states.indexOf("ready")).includes("discovering");
    });
  };
  await eventually(async () => (await since()).every(Boolean), {
    what: "both racks discover their devices again",
    seen: server.process.transcript,
  });
}, 90_000);
