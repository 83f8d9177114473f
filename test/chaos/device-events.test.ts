import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Trait } from "../../simulator/devices/profile.ts";
import { openSecretStore } from "../../src/store/access/secrets.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import {
  adminToken,
  expectInventory,
  type ServerProcess,
  spawnServer,
  startServerProcess,
} from "../support/processes/server-process.ts";
import {
  type InventoryRow,
  type SimulatorProcess,
  startSimulatorProcess,
} from "../support/processes/simulator-process.ts";
import { putSiteOnRecord } from "../support/run-bench.ts";

/**
 * Replicas that follow the events of devices. Without events a device is read every second; while its stream lives, every ten
 * minutes: what shows within seconds then was brought by an event.
 */
let bench: ProcessBench;
let simulator: SimulatorProcess;
let prepared: TestDatabase;
let database: TestDatabase;
let token: string;
let shelfRow: InventoryRow;
let shelfId: string;
const devices: string[] = [];
let [shelf, machine] = ["", ""];
const replicas: ServerProcess[] = [];

const env = () => ({
  MILLWRIGHT_SECRET_KEY_FILE: join(bench.directory, "secret-key"),
  MILLWRIGHT_MONITOR_INTERVAL: "1s",
  MILLWRIGHT_CONDITIONS_INTERVAL: "1s",
  MILLWRIGHT_MONITOR_EVENTS_INTERVAL: "10m",
  MILLWRIGHT_MONITOR_EVENTS_SILENCE: "3s",
});
const serve = ({ url }: TestDatabase, name: string, more: Readonly<Record<string, string>> = {}) => ({
  command: "serve" as const,
  name,
  databaseUrl: url,
  env: { ...env(), ...more },
});
const start = async (name: string): Promise<ServerProcess> => {
  const server = await startServerProcess(bench, serve(database, name));
  replicas.push(server);
  return server;
};

beforeAll(async () => {
  bench = openProcessBench();
  simulator = await startSimulatorProcess(bench, { speed: 50 });
  prepared = await createTestDatabase();
  token = await adminToken(prepared);
  const { db } = prepared;
  const secrets = openSecretStore({ keyFile: join(bench.directory, "secret-key") });
  const machines = await putSiteOnRecord({ db, stores: allStores, secrets, maxFindByIds: 100 }, simulator.call);
  const off = { MILLWRIGHT_MONITOR_EVENTS: "false" };
  const preparing = await startServerProcess(bench, serve(prepared, "preparing", off));
  const rows = await simulator.inventory();
  await expectInventory(preparing, token, rows);
  await eventually(
    async () => {
      const [{ missing }] = (await db.query<{ missing: number }>(
        `select ((select count(*) from machines where facts ->> 'certificateFingerprint' is null or state = 'FACTORY_READY')
               + $1 - (select count(*) from power_shelves where state = 'ready'))::int as missing`,
        [rows.length],
      )) as [{ missing: number }];
      return missing === 0;
    },
    { what: "all devices are known", seen: preparing.process.transcript, within: 60_000 },
  );
  shelfRow = rows[0] as InventoryRow;
  const [known] = await db.query<{ id: string }>("select id from power_shelves where bmc_mac = $1", [
    shelfRow.bmc_mac_address.toLowerCase(),
  ]);
  shelfId = known?.id ?? "";
  devices.push(...rows.map(({ metadata }) => metadata.name), ...machines.map(({ machine_id }) => machine_id));
  [shelf, machine] = [shelfRow.metadata.name, machines[0]?.machine_id ?? ""];
  preparing.process.signal("SIGTERM");
  await preparing.process.exited;
  await prepared.close();
  database = await createTestDatabase({ clone: prepared });
  await start("one");
  await start("other");
}, 120_000);
afterAll(async () => {
  await bench.close();
  await database?.drop();
  await prepared.drop();
});

interface Truth {
  readonly requests: number;
  readonly event_streams: { readonly open: number; readonly opened: number };
}
const truth = (id: string) => simulator.call<Truth>("GET", `/devices/${id}`);
const takeOn = (id: string, ...traits: Trait[]) => simulator.call("PUT", `/devices/${id}/profile`, { profile: traits });
const switchAtRack = (id: string, power: "on" | "off") => simulator.call("POST", `/devices/${id}/power`, { power });
const transcripts = () => replicas.map(({ process }) => process.transcript().slice(-3_000)).join("\n");
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

interface Row {
  readonly id: string;
  readonly owner: string | null;
  readonly live: boolean;
  readonly reason: string | null;
}
const rowsOf = ({ db }: TestDatabase = database) =>
  db.query<Row & object>("select id, owner, live_since is not null as live, reason from event_streams order by id");
const recordOf = (device: string) => (device === shelf ? shelfId : device);
const isLive = async (device: string) => (await rowsOf()).some(({ id, live }) => id === recordOf(device) && live);
const untilLive = (device: string) =>
  eventually(() => isLive(device), { what: `${device} is followed`, within: 60_000, seen: transcripts });
const untilAllLive = () =>
  eventually(async () => (await rowsOf()).filter(({ live }) => live).length === devices.length, {
    what: "all devices are followed",
    within: 90_000,
    seen: async () => `${JSON.stringify(await rowsOf())}\n${transcripts()}`,
  });

async function powerOf(device: string): Promise<string | null> {
  const table = device === shelf ? "power_shelves" : "machines";
  const [row] = await database.db.query<{ power: string | null }>(
    `select facts ->> 'powerState' as power from ${table} where id = $1`,
    [recordOf(device)],
  );
  return row?.power ?? null;
}

/** Requests that reach the device in so many seconds. */
async function requestsIn(device: string, seconds: number): Promise<number> {
  const { requests } = await truth(device);
  await wait(seconds * 1_000);
  return (await truth(device)).requests - requests;
}

/** Nothing but the stream: what an event had read is over. */
const untilQuiet = (device: string) =>
  eventually(async () => (await requestsIn(device, 2.5)) === 0, { what: `${device} is left alone`, seen: transcripts });

/** How long a change at the rack takes to show, the best of a few: the machine that tests run on is busy. */
async function showsAfter(device: string): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (const power of ["off", "on", "off", "on"] as const) {
    await eventually(async () => (await powerOf(device)) !== power, { what: `${device} is not yet ${power}` });
    const changedAt = performance.now();
    await switchAtRack(device, power);
    await eventually(async () => (await powerOf(device)) === power, {
      what: `${device} is shown ${power}`,
      seen: transcripts,
    });
    best = Math.min(best, performance.now() - changedAt);
    if (best < 2_000 && power === "on") break;
  }
  return best;
}

describe("events of devices", { timeout: 180_000 }, () => {
  test("are followed by one stream a device, whichever replica holds it", async () => {
    await untilAllLive();
    const streams = await Promise.all(devices.map(async (id) => (await truth(id)).event_streams));
    expect(streams).toEqual(devices.map(() => ({ open: 1, opened: 1 })));
  });

  test("keep the polls of a device rare while they are followed", async () => {
    await Promise.all([shelf, machine].map(untilQuiet));
    const [ofShelf, ofMachine] = await Promise.all([requestsIn(shelf, 4), requestsIn(machine, 4)]);
    expect([ofShelf, ofMachine]).toEqual([0, 0]);
  });

  test("show a change that is made outside within 2 s, of a shelf and of a machine", async () => {
    expect(await showsAfter(shelf)).toBeLessThan(2_000);
    expect(await showsAfter(machine)).toBeLessThan(2_000);
    const [explained] = await Promise.all([
      replicas[0]?.ask<{ doing: string }>(
        "millwright.v1.ExplainService/Explain",
        { kind: "power_shelf", id: shelfId },
        token,
      ),
    ]);
    expect(explained?.doing).toMatch(/^being watched by its events since /);
  });

  test.for<Trait>(["events_silent", "events_drip"])(
    "that are %s bring the polls back, until the stream lives again",
    async (trait) => {
      await Promise.all([shelf, machine].map((device) => takeOn(device, trait)));
      for (const device of [shelf, machine])
        await eventually(async () => (await requestsIn(device, 2)) > 1, {
          what: `${device} is polled`,
          seen: transcripts,
        });
      await Promise.all([shelf, machine].map((device) => takeOn(device)));
      await Promise.all([shelf, machine].map(untilLive));
      await Promise.all([shelf, machine].map(untilQuiet));
    },
  );

  test("are followed again at once with other credentials, and no more once the device is deleted", async () => {
    await untilLive(shelf);
    const { opened } = (await truth(shelf)).event_streams;
    const { bmc_username: bmcUsername, bmc_password: bmcPassword } = shelfRow;
    const credentials = { id: shelfId, bmcUsername, bmcPassword };
    await replicas[0]?.ask("millwright.v1.PowerShelfService/SetPowerShelfCredentials", credentials, token);
    await eventually(async () => (await truth(shelf)).event_streams.opened > opened, {
      what: "a new stream was opened",
      within: 15_000,
      seen: transcripts,
    });
    await untilLive(shelf);
    // The replica that held the stream before notices within a second.
    await eventually(async () => (await truth(shelf)).event_streams.open === 1, {
      what: "one stream is open",
      within: 10_000,
    });
    await replicas[0]?.ask("forge.Forge/DeletePowerShelf", { id: { id: shelfId } }, token);
    await eventually(async () => (await truth(shelf)).event_streams.open === 0, {
      what: "the stream has ended",
      within: 15_000,
      seen: transcripts,
    });
  });

  test("are taken over by another replica when theirs is killed", async () => {
    await untilLive(machine);
    const { opened } = (await truth(machine)).event_streams;
    const owner = (await rowsOf()).find(({ id }) => id === machine)?.owner;
    const systems = await Promise.all(
      replicas.map((server) => server.ask<{ replicaId: string }>("millwright.v1.SystemService/GetSystem", {}, token)),
    );
    const victim = replicas[systems.findIndex(({ replicaId }) => replicaId === owner)];
    expect(victim, JSON.stringify({ owner, systems })).toBeDefined();
    victim?.process.signal("SIGKILL");
    await victim?.process.exited;
    replicas.splice(replicas.indexOf(victim as ServerProcess), 1);
    await eventually(async () => (await truth(machine)).event_streams.opened > opened, {
      what: "another replica follows",
      within: 40_000,
      seen: transcripts,
    });
    await untilLive(machine);
    expect((await truth(machine)).event_streams.open).toBe(1);
    expect(await showsAfter(machine)).toBeLessThan(2_000);
  });

  test("are followed by nobody after the stop of the server", async () => {
    for (const { process } of replicas) process.signal("SIGTERM");
    for (const { process } of replicas) expect(await process.exited).toEqual({ code: 0, signal: null });
    const open = await Promise.all(devices.map(async (id) => (await truth(id)).event_streams.open));
    expect(open).toEqual(devices.map(() => 0));
    expect(await database.db.query("select owner from event_holders where alive_until > now()")).toEqual([]);
    expect((await rowsOf()).filter(({ owner, live }) => owner !== null || live)).toEqual([]);
  });
});

describe("a server killed at", { timeout: 120_000 }, () => {
  test.for(["event-streams:claimed", "event-streams:released"])(
    "%s leaves its devices to the next one",
    async (failPoint, { onTestFinished }) => {
      const own = await createTestDatabase({ clone: prepared });
      onTestFinished(() => own.drop());
      await takeOn(machine, "no_events");
      const dying = spawnServer(bench, serve(own, "victim", { MILLWRIGHT_FAILPOINT: `${failPoint}:machine` }));
      expect(await dying.exited, dying.transcript()).toEqual({ code: null, signal: "SIGKILL" });
      // As if the time had passed.
      await own.db.query("update event_holders set alive_until = now()");
      const successor = await startServerProcess(bench, serve(own, "successor"));
      await eventually(
        async () => {
          const rows = await rowsOf(own);
          return rows.filter(({ live }) => live).length === devices.length - 1 && rows.find(({ id }) => id === machine);
        },
        { what: "all but one are followed", seen: successor.process.transcript, within: 60_000 },
      );
      expect((await rowsOf(own)).find(({ id }) => id === machine)).toMatchObject({
        live: false,
        reason: "unsupported",
      });
      successor.process.signal("SIGTERM");
      expect(await successor.process.exited).toEqual({ code: 0, signal: null });
    },
  );
});
