import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { killAll, type ProcessEntry, processesIn } from "../support/processes/process-table.ts";
import {
  devTokenOf,
  type ServerProcess,
  spawnServer,
  startServerProcess,
} from "../support/processes/server-process.ts";
import { controlSimulator, type Device } from "../support/processes/simulator-process.ts";

/** `millwright dev` as users start it: with its own database and its own simulated devices. */
let bench: ProcessBench;
beforeEach(() => {
  bench = openProcessBench();
});
afterEach(() => bench.close());

const startDev = () => startServerProcess(bench, { command: "dev", env });
const env = { MILLWRIGHT_SIM_SPEED: "100", MILLWRIGHT_SIM_SITE: "racks=1" };

interface Shelf {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly powerState: string;
  readonly bmc: { readonly address: string; readonly port: number };
}

const shelvesOf = async (dev: ServerProcess): Promise<Shelf[]> =>
  (await dev.ask<{ powerShelves?: Shelf[] }>("millwright.v1.PowerShelfService/ListPowerShelves", {}, devTokenOf(dev)))
    .powerShelves ?? [];

const untilReady = (dev: ServerProcess, condition: (shelves: readonly Shelf[]) => boolean = () => true) =>
  eventually(
    async () => {
      const shelves = await shelvesOf(dev);
      const rest = shelves.length === 8 && shelves.every(({ state }) => state === "ready");
      return rest && condition(shelves) ? shelves : undefined;
    },
    { what: "all 8 shelves are ready", seen: dev.process.transcript },
  );

const simulatorOf = (dev: ServerProcess) =>
  controlSimulator(/simulator control\s+(\S+)/.exec(dev.process.stdout())?.[1] ?? "");

/** One shelf is switched off through the API, so that there is something to remember. */
async function switchOneOff(dev: ServerProcess): Promise<string> {
  const [first] = await untilReady(dev);
  const id = first?.id ?? "";
  await dev.ask(
    "forge.Forge/SetPowerShelfMaintenance",
    { powerShelfIds: [{ id }], operation: "POWER_SHELF_MAINTENANCE_OPERATION_POWER_OFF" },
    devTokenOf(dev),
  );
  await untilReady(dev, (shelves) => shelves.some((shelf) => shelf.id === id && shelf.powerState === "off"));
  return id;
}

const asLeft = ({ id, name, powerState, bmc }: Shelf) => ({ id, name, powerState, bmc });
const identityOf = ({ id, address, port, mac, serial, power }: Device) => ({ id, address, port, mac, serial, power });
const isDatabase = ({ command }: ProcessEntry) => command.includes("postgres");

test.each([
  ["SIGTERM", "to the server alone", (dev: ServerProcess) => dev.process.signal("SIGTERM")],
  ["SIGINT", "to its whole group, as Ctrl-C does", (dev: ServerProcess) => dev.process.signalGroup("SIGINT")],
  [
    "SIGINT",
    "twice for one key press, as npm may pass it on,",
    (dev: ServerProcess) => {
      dev.process.signalGroup("SIGINT");
      setTimeout(() => dev.process.signal("SIGINT"), 5);
    },
  ],
])("%s %s stops everything and leaves nothing behind", async (_name, _how, stop) => {
  const dev = await startDev();
  await untilReady(dev);
  const running = processesIn(bench.directory);
  expect(running.some(isDatabase)).toBe(true);
  expect(running.some(({ command }) => command.includes("simulator/main.ts"))).toBe(true);

  const saidBefore = dev.process.stderr().length;
  stop(dev);
  expect(await dev.process.exited, dev.process.transcript()).toEqual({ code: 0, signal: null });
  expect(processesIn(bench.directory)).toEqual([]);
  expect(existsSync(join(dev.dataDir, "endpoints.json"))).toBe(false);
  expect(existsSync(join(dev.dataDir, "simulator", "simulator.json"))).toBe(false);
  expect(dev.process.transcript()).not.toMatch(/did not stop cleanly|"level":"error"/);
  expect(dev.process.stderr().slice(saidBefore)).not.toContain('"level":"warn"');
});

test("a stop while it is still starting leaves nothing behind either", async () => {
  const starting = spawnServer(bench, { command: "dev", env });
  await eventually(async () => processesIn(bench.directory).some(isDatabase), {
    what: "the database is being started",
    seen: starting.transcript,
  });
  starting.signal("SIGTERM");
  await starting.exited;
  await eventually(async () => processesIn(bench.directory).length === 0, {
    what: "nothing is left",
    seen: () => `${JSON.stringify(processesIn(bench.directory))}\n${starting.transcript()}`,
  });
});

test("a second server on the same data directory is refused, says who has it, and does no harm", async () => {
  const dev = await startDev();
  const second = spawnServer(bench, { command: "serve" });
  expect(await second.exited).toEqual({ code: 1, signal: null });
  expect(second.stderr()).toContain(String(dev.process.pid));
  expect((await dev.get("/readyz")).status).toBe(200);
  expect(existsSync(join(dev.dataDir, "endpoints.json"))).toBe(true);
});

test("after kill -9 of the server alone, the next one takes over the running database and goes on", async () => {
  const killed = await startDev();
  await switchOneOff(killed);
  const before = (await shelvesOf(killed)).map(asLeft);
  const devicesBefore = (await simulatorOf(killed).devices()).map(identityOf);
  const database = processesIn(bench.directory).find(({ command }) => /bin\/postgres\b.* -D /.test(command));
  killed.process.signal("SIGKILL");
  await killed.process.exited;
  await eventually(async () => processesIn(bench.directory).every(isDatabase), {
    what: "the simulator has ended with its server",
  });
  expect(processesIn(bench.directory).map(({ pid }) => pid)).toContain(database?.pid);

  const next = await startDev();
  expect(processesIn(bench.directory).map(({ pid }) => pid)).toContain(database?.pid);
  expect((await untilReady(next)).map(asLeft)).toEqual(before);
  expect((await simulatorOf(next).devices()).map(identityOf)).toEqual(devicesBefore);
}, 90_000);

test("after kill -9 of everything, the next start goes on with the same data and the same devices", async () => {
  const killed = await startDev();
  const off = await switchOneOff(killed);
  const before = (await shelvesOf(killed)).map(asLeft);
  const devicesBefore = (await simulatorOf(killed).devices()).map(identityOf);
  killAll(processesIn(bench.directory));
  await killed.process.exited;
  await eventually(async () => processesIn(bench.directory).length === 0, { what: "everything is dead" });

  const next = await startDev();
  expect((await untilReady(next)).map(asLeft)).toEqual(before);
  expect((await simulatorOf(next).devices()).map(identityOf)).toEqual(devicesBefore);
  await next.ask(
    "forge.Forge/SetPowerShelfMaintenance",
    { powerShelfIds: [{ id: off }], operation: "POWER_SHELF_MAINTENANCE_OPERATION_POWER_ON" },
    devTokenOf(next),
  );
  await untilReady(next, (shelves) => shelves.some(({ id, powerState }) => id === off && powerState === "on"));
}, 120_000);
