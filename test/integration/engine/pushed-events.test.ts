import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type MachineRow, startTemporarySimulator } from "../../../simulator/testing/temporary-simulator.ts";
import { createDeviceEvents } from "../../../src/api/rest/device-events.ts";
import type { BmcTarget } from "../../../src/capabilities/bmc-target.ts";
import { EventStreams } from "../../../src/engine/events/event-streams.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { milliseconds, minutes, seconds } from "../../../src/kernel/time/duration.ts";
import { createRedfishMachineProvider } from "../../../src/providers/redfish/machine/redfish-machine-provider.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { EVENT_INBOXES, eventAddress } from "../../../src/services/device/event-addresses.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import * as streams from "../../../src/store/device/event-streams.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { startApi } from "../api/api-under-test.ts";

/** Events of a BMC that sends them: where they arrive, what becomes of its subscription, and what a stranger can do with the address. */
const MACHINE = "m-rack1-01";
const SUBSCRIPTIONS = "/redfish/v1/EventService/Subscriptions";

let site: Awaited<ReturnType<typeof startTemporarySimulator>>;
let target: BmcTarget;
let database: TestDatabase;
let directory: string;
let deps: ServiceDeps;
let api: Awaited<ReturnType<typeof startApi>>;
const running: { stop(): Promise<void> }[] = [];
let nudges = 0;

beforeAll(async () => {
  site = await startTemporarySimulator({ site: "racks=1", speed: 50 });
  const { body } = await site.control<MachineRow[]>("GET", "/inventory/machines");
  const row = body.find(({ machine_id }) => machine_id === MACHINE) as MachineRow;
  const [address = "", port = ""] = row.bmc_endpoint.split(/[:/]/);
  target = {
    ...{ address, port: Number(port), scheme: "https", trust: { mode: "off" } },
    ...{ username: row.bmc_username, password: row.bmc_password },
  };
  await site.control("PUT", `/devices/${MACHINE}/profile`, { profile: ["events_pushed"] });
  directory = mkdtempSync(join(tmpdir(), "millwright-events-"));
  database = await createTestDatabase();
  const secrets = openSecretStore({ keyFile: join(directory, "secret.key") });
  deps = { db: database.db, stores: allStores, secrets, maxFindByIds: 100 };
  api = await startApi({
    http: async (app) => {
      await app.register(
        createDeviceEvents({ services: deps, listeners: ["own"], reportUnexpected: (cause) => `${cause}` }),
      );
    },
  });
});
afterAll(async () => {
  await api.close();
  await database.drop();
  await site[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});
beforeEach(async () => {
  nudges = 0;
  for (const table of ["machines", "event_streams", "event_holders", "secrets"])
    await database.db.query(`delete from ${table}`);
  for (const { path } of await subscriptions()) await site.redfish(MACHINE, path, { method: "DELETE" });
  await database.db.query(
    "insert into machines (id, provider, state, bmc_endpoint, bmc_trust) values ($1, 'redfish', 'READY', '10.0.0.1', 'off')",
    [MACHINE],
  );
  await database.db.query(
    "insert into secrets (name, nonce, ciphertext, key_id) values ('bmc/' || $1, decode(repeat('00', 12), 'hex'), decode(repeat('00', 40), 'hex'), 'k')",
    [MACHINE],
  );
});
afterEach(async () => {
  for (const each of running.splice(0)) await each.stop();
});

const addressOf = (
  stream: { kind: string; id: string; epoch: number },
  now = new Date(),
  listener = "own" as "own" | "shared",
) => eventAddress(deps.secrets, stream, { server: api.httpUrl, now, listener });

function startReplica(owner: string, checkedEvery = minutes(5)) {
  const gateway = createBmcGateway({ concurrency: 1 });
  const provider = createRedfishMachineProvider({ gateway });
  const { events } = provider.can;
  if (events === undefined) throw new Error("the provider follows events");
  const loop = new EventStreams({
    db: database.db,
    log: silentLog,
    owner,
    placesOf: async (keys) => keys.map(() => ({ events, target })),
    nudge: async () => {
      nudges += 1;
    },
    most: 10,
    silence: seconds(90),
    pollsEvery: () => minutes(10),
    addresses: {
      checkedEvery,
      isHere: (url) => url.startsWith(`${api.httpUrl}${EVENT_INBOXES}/`),
      addressFor: (claimed) => addressOf(claimed),
    },
  });
  const stop = new AbortController();
  const ran = loop.run(stop.signal);
  const replica = {
    async stop() {
      stop.abort();
      await ran;
      await provider.close();
      gateway.close();
    },
  };
  running.push(replica);
  return replica;
}

interface Subscribed {
  readonly path: string;
  readonly destination: string;
}
async function subscriptions(): Promise<Subscribed[]> {
  const list = (await site.redfish(MACHINE, SUBSCRIPTIONS)).json<{ Members: { "@odata.id": string }[] }>();
  return Promise.all(
    list.Members.map(async ({ "@odata.id": path }) => {
      const { Destination } = (await site.redfish(MACHINE, path)).json<{ Destination: string }>();
      return { path, destination: Destination };
    }),
  );
}
const subscribe = (destination: string) =>
  site.redfish(MACHINE, SUBSCRIPTIONS, {
    method: "POST",
    body: { Destination: destination, Context: "x", Protocol: "Redfish" },
  });
const ours = async () => (await subscriptions()).filter(({ destination }) => destination.startsWith(api.httpUrl));
const whenSubscribed = (but: readonly string[] = []) =>
  eventually(
    async () => {
      const [found, more] = await ours();
      return found !== undefined && more === undefined && !but.includes(found.path) && found;
    },
    { what: "the BMC has one subscription of ours" },
  );
/** The device was read once it was subscribed to, and once more: what comes then was brought by something else. */
async function whenRead(): Promise<Subscribed> {
  const found = await whenSubscribed();
  await eventually(async () => nudges >= 2, { what: "what happened before is read" });
  nudges = 0;
  return found;
}
const switchAtRack = (power: "on" | "off") => site.control("POST", `/devices/${MACHINE}/power`, { power });
const post = (url: string, body = "{}") =>
  fetch(url, { method: "POST", body, headers: { "content-type": "application/json" } }).then(({ status }) => status);

describe("a BMC that sends its events", () => {
  test("is told where to, and the device is read when it does; when the replica stops, it is told no more", async () => {
    const replica = startReplica("one");
    await whenRead();
    await switchAtRack("off");
    await eventually(async () => nudges > 0, { what: "the device is read" });
    await switchAtRack("on");
    await replica.stop();
    expect(await ours()).toEqual([]);
  });

  test("and forgets where to, is told again, and the device is read", async () => {
    startReplica("one", milliseconds(300));
    const before = await whenRead();
    await site.redfish(MACHINE, before.path, { method: "DELETE" });
    await whenSubscribed([before.path]);
    await eventually(async () => nudges > 0, { what: "the device is read, since an event may have been missed" });
  });

  test("is told no more once the device is gone", async () => {
    startReplica("one");
    await whenRead();
    await database.db.query("delete from machines");
    await eventually(async () => (await ours()).length === 0, { what: "the subscription is gone" });
  });

  test("loses what a replica that died has left with it, and keeps those of others", async () => {
    const others = "https://192.0.2.9/events";
    await subscribe(others);
    const [stale, older] = [98, 99].map((epoch) => addressOf({ kind: "machine", id: MACHINE, epoch }).url);
    for (const url of [stale, older]) await subscribe(url ?? "");
    const left = (await ours()).map(({ path }) => path);
    expect(left).toHaveLength(2);
    startReplica("other");
    await whenSubscribed(left);
    expect((await subscriptions()).map((each) => each.destination)).toContain(others);
  });

  test("without a stream and without an address of ours is polled, and says why", async () => {
    const gateway = createBmcGateway();
    const provider = createRedfishMachineProvider({ gateway });
    const listener = { opened() {}, alive() {}, present() {}, happened() {} };
    const call = { signal: new AbortController().signal, subject: "test", mayTouchDevice: <T>(wanted: T) => wanted };
    await expect(provider.can.events?.follow(target, listener, call)).rejects.toMatchObject({ code: "unsupported" });
    await provider.close();
    gateway.close();
  });
});

describe("whoever sends something to an address", () => {
  const hour = 3_600_000;

  test("has the device read, however much it is, at the pace of any other device, and nothing of it is believed", async () => {
    startReplica("one");
    const { destination } = await whenRead();
    const flood = await Promise.all(Array.from({ length: 300 }, () => post(destination, "x".repeat(20_000))));
    expect(new Set(flood)).toEqual(new Set([204]));
    await eventually(async () => nudges > 0, { what: "the device is read" });
    expect(nudges).toBeLessThan(10);
    const [row] = await database.db.query("select state, facts from machines");
    expect(row).toEqual({ state: "READY", facts: {} });
  });

  test("does nothing where the address is guessed, changed, expired, of another listener, or of a stream that is over", async () => {
    const held = { kind: "machine", id: MACHINE, epoch: 7 };
    await streams.noteDevices(database.db);
    await database.db.query("update event_streams set owner = 'one', epoch = 7");
    const { url } = addressOf(held);
    const signature = url.split("/").at(-1) ?? "";
    const wrong = [
      url.replace(signature, "A".repeat(signature.length)),
      url.replace(signature, ""),
      url.replace(MACHINE, "m-rack1-02"),
      url.replace("/7/", "/8/"),
      url.replace("/machine/", "/power_shelf/"),
      addressOf(held, new Date(Date.now() - 25 * hour)).url,
      addressOf(held, new Date(), "shared").url,
      addressOf({ ...held, epoch: 6 }).url,
    ];
    for (const each of wrong) expect([each, await post(each)]).toEqual([each, 404]);
    const heard = () => database.db.query("select from event_streams where heard_at is not null");
    expect(await heard()).toEqual([]);
    expect((await fetch(url)).status).toBe(404);
    expect(await post(url)).toBe(204);
    expect(await heard()).toHaveLength(1);
  });
});
