import { expect, test } from "vitest";
import { runSilence } from "../../../src/engine/fleet/silence.ts";
import { minutes } from "../../../src/kernel/time/duration.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { RecordingLog } from "../api/api-under-test.ts";

let database: TestDatabase;
const stop = new AbortController();
let replicas: Promise<void>[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
  await database.db.execute(
    "insert into fleet_sites (name, url, created_by) values ('lab', 'https://maas.example', 'kim')",
  );
  const options = { db: database.db, stores: allStores, log: new RecordingLog(), offlineAfter: minutes(3) };
  replicas = [1, 2].map(() => runSilence(options, stop.signal));
});
afterAll(async () => {
  stop.abort();
  await Promise.all(replicas);
  await database.drop();
});

let count = 0;
/** In the state for so many minutes; its agent was heard so many minutes ago, and said that of it. */
async function aNode(node: {
  readonly state: string;
  readonly since: number;
  readonly heard?: readonly [ago: number, health: "healthy" | "unhealthy" | null];
  readonly reason?: string;
}): Promise<string> {
  const id = `fn-${++count}`;
  const { state, since, heard, reason } = node;
  await database.db.transaction(async (tx) => {
    await tx.execute(
      `insert into fleet_nodes (id, site, profile, sku, hostname, mode, machine_id, request_id, fingerprint, created_by, state, state_since, facts)
       values ($1, 'lab', 'h100', 'gpu8', $1, 'maas', 'm-' || $1, $1, '', 'kim', $2, now() - $3 * interval '1 min', $4)`,
      [id, state, since, JSON.stringify(reason === undefined ? {} : { quarantineReason: reason })],
    );
    if (!heard) return;
    await tx.execute(
      `insert into fleet_heartbeats (node_id, seen_at, health, health_at)
       values ($1, now() - $2 * interval '1 min', $3::text, case when $3::text is not null then now() - $2 * interval '1 min' end)`,
      [id, ...heard],
    );
  });
  return id;
}
const stateOf = async (id: string) =>
  (await database.db.query<{ state: string }>("select state from fleet_nodes where id = $1", [id]))[0]?.state;
const becomes = (id: string, state: string) =>
  expect.poll(() => stateOf(id), { timeout: 20_000, interval: 50 }).toBe(state);

test("an active node whose agent was silent for three minutes is offline, also one that never called; told once by two replicas", async () => {
  const silent = await aNode({ state: "active", since: 60, heard: [4, "healthy"] });
  const mute = await aNode({ state: "active", since: 4 });
  await becomes(silent, "offline");
  await becomes(mute, "offline");
  const told = await database.db.query<{ id: string; actor: string; reason: string }>(
    "select id, actor, reason from journal where kind = 'fleet_node' and to_state = 'offline' and id = any($1) order by id",
    [[silent, mute]],
  );
  expect(told.map(({ id }) => id)).toEqual([silent, mute]);
  expect(told[0]).toMatchObject({ actor: "fleet reconciler", reason: "its agent was silent for 3m" });
});

test("an offline node is active again at its first healthy heartbeat, and not by one from before, nor by a call that says nothing", async () => {
  const well = await aNode({ state: "offline", since: 1, heard: [0, "healthy"] });
  const before = await aNode({ state: "offline", since: 1, heard: [2, "healthy"] });
  const unwell = await aNode({ state: "offline", since: 1, heard: [0, "unhealthy"] });
  const quiet = await aNode({ state: "offline", since: 1, heard: [0, null] });
  await becomes(well, "active");
  for (const id of [before, unwell, quiet]) expect(await stateOf(id)).toBe("offline");
});

test("a node that became active a moment ago has three minutes of its own, and one that is heard stays", async () => {
  const fresh = await aNode({ state: "active", since: 1 });
  const heard = await aNode({ state: "active", since: 600, heard: [2, null] });
  const last = await aNode({ state: "active", since: 600 });
  await becomes(last, "offline");
  for (const id of [fresh, heard]) expect(await stateOf(id)).toBe("active");
});

test("no heartbeat lifts a quarantine, also not that of a node that was reset in between", async () => {
  const quarantined = await aNode({ state: "quarantined", since: 60, heard: [0, "healthy"], reason: "broken_in_maas" });
  const reset = await aNode({ state: "offline", since: 1, heard: [0, "healthy"], reason: "broken_in_maas" });
  const other = await aNode({ state: "offline", since: 1, heard: [0, "healthy"] });
  await becomes(other, "active");
  expect([await stateOf(quarantined), await stateOf(reset)]).toEqual(["quarantined", "offline"]);
});

test("retired, draining and removing nodes are nobody's to move for their silence", async () => {
  const ids: string[] = [];
  for (const state of ["enrolling", "draining", "retired", "removing"]) ids.push(await aNode({ state, since: 600 }));
  const last = await aNode({ state: "active", since: 600 });
  await becomes(last, "offline");
  expect(await Promise.all(ids.map(stateOf))).toEqual(["enrolling", "draining", "retired", "removing"]);
});
