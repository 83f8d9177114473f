import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { seconds } from "../../../src/kernel/time/duration.ts";
import * as streams from "../../../src/store/device/event-streams.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

/** Machines behind one BMC, by the endpoints that people give them. */
const ENDPOINTS = {
  "m-1": "https://10.0.0.1/redfish/v1/Systems/1",
  "m-2": "https://10.0.0.1/redfish/v1/Systems/2",
  "m-3": "https://10.0.0.1",
  "m-4": "https://10.0.0.2",
} as const;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

beforeEach(async () => {
  const { db } = database;
  await db.query("delete from machines");
  await db.query("delete from event_streams");
  for (const [id, endpoint] of Object.entries(ENDPOINTS)) await addMachine(id, endpoint);
  await streams.noteDevices(db);
  for (const owner of ["one", "other"]) await streams.holdOn(db, owner, seconds(60));
});

async function addMachine(id: string, endpoint: string): Promise<void> {
  await database.db.query(
    "insert into machines (id, provider, state, bmc_endpoint, bmc_trust) values ($1, 'redfish', 'READY', $2, 'off')",
    [id, endpoint],
  );
  await database.db.query(
    `insert into secrets (name, nonce, ciphertext, key_id) values ('bmc/' || $1, decode(repeat('00', 12), 'hex'), decode(repeat('00', 40), 'hex'), 'k')
     on conflict (name) do nothing`,
    [id],
  );
}

const claim = (owner: string) => streams.claimStreams(database.db, { owner, limit: 20 });
const rows = () =>
  database.db.query<{ id: string; owner: string | null; live: boolean; reason: string | null }>(
    "select id, owner, live_since is not null as live, reason from event_streams order by id",
  );
const ended = { after: seconds(60), failures: 1 };

describe("machines behind one BMC", () => {
  test("have one stream, whoever claims at the same time", async () => {
    const [ours, theirs] = await Promise.all([claim("one"), claim("other")]);
    expect([...ours, ...theirs].map(({ id }) => id).toSorted()).toEqual(["m-1", "m-4"]);
    expect(await claim("other")).toEqual([]);
  });

  test("live with it, are told of together, and are without it together", async () => {
    const [stream] = (await claim("one")).filter(({ id }) => id === "m-1") as [streams.ClaimedStream];
    expect(await streams.setLive(database.db, stream, true)).toBe(true);
    const watching = await streams.findWatching(
      database.db,
      ["m-1", "m-2", "m-3"].map((id) => ({ kind: "machine", id })),
    );
    expect(watching.map(({ liveSince }) => liveSince)).toEqual(Array(3).fill(expect.any(Date)));
    expect((await streams.findSharing(database.db, stream)).map(({ id }) => id).toSorted()).toEqual([
      "m-1",
      "m-2",
      "m-3",
    ]);
    // One that comes later shares it, too.
    await addMachine("m-5", "https://10.0.0.1/redfish/v1/Systems/5");
    await streams.noteDevices(database.db);
    expect(await claim("other")).toEqual([]);
    await streams.shareStreams(database.db, "one");
    expect((await rows()).filter(({ live }) => live).map(({ id }) => id)).toEqual(["m-1", "m-2", "m-3", "m-5"]);
    await streams.releaseStreams(database.db, [{ ...stream, owner: "one", ...ended, reason: "unsupported" }]);
    const left = (await rows()).filter(({ id }) => id !== "m-4");
    expect(left).toEqual(left.map(({ id }) => ({ id, owner: null, live: false, reason: "unsupported" })));
    // The BMC has said that it has none: nobody asks it again before its time.
    expect(await claim("other")).toEqual([]);
  });

  test("go on by another when the first has wrong credentials, or is gone", async () => {
    const [stream] = (await claim("one")).filter(({ id }) => id === "m-1") as [streams.ClaimedStream];
    await streams.releaseStreams(database.db, [{ ...stream, owner: "one", ...ended, reason: "credentials_rejected" }]);
    const [second] = (await claim("other")) as [streams.ClaimedStream];
    expect(second.id).toBe("m-2");
    await streams.setLive(database.db, second, true);
    await database.db.query("delete from machines where id = 'm-2'");
    await streams.noteDevices(database.db);
    expect(await streams.findHeld(database.db, [second])).toEqual([]);
    await streams.releaseStreams(database.db, [
      { ...second, owner: "other", after: seconds(0), failures: 0, reason: null },
    ]);
    expect((await claim("one")).map(({ id }) => id)).toEqual(["m-1"]);
  });

  test("are left to another replica as a whole when theirs dies", async () => {
    const [stream] = (await claim("one")).filter(({ id }) => id === "m-1") as [streams.ClaimedStream];
    await streams.setLive(database.db, stream, true);
    await database.db.query("update event_holders set alive_until = now() where owner = 'one'");
    expect((await claim("other")).map(({ id }) => id).toSorted()).toEqual(["m-1", "m-4"]);
  });
});
