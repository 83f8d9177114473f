import { expect, test } from "vitest";
import { Controller } from "../../../../src/engine/controller.ts";
import { silentLog } from "../../../../src/kernel/log.ts";
import { collectThingStores, storeOf } from "../../../../src/store/lifecycle/things.ts";
import { withContext } from "../../../../src/wiring/things/with-context.ts";
import { createTestDatabase, type TestDatabase } from "../../../support/database.ts";
import { eventually } from "../../../support/eventually.ts";
import { bareStores } from "../../../support/processes/bare-stores.ts";
import { bayHandlers, createBayTables } from "../../../support/rigs/bay.ts";
import { addBay, bayStores, requestMaintenance, startBayEngine } from "../../../support/rigs/bay-engine.ts";
import { createRigTables } from "../../../support/rigs/rig.ts";
import { afterAll, beforeAll } from "../../../support/second-try.ts";

/** During an upgrade: replicas of the version before know neither bays nor gadgets, and share the table of runs with those that do. */
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await createRigTables(database.db);
  await createBayTables(database.db);
});
afterAll(() => database.drop());

test("a run on a kind of target that only another version knows is left to a replica of that version", async () => {
  const { db } = database;
  const olderStores = collectThingStores(bareStores);
  await addBay(db, "b-1", 1);
  const stop = new AbortController();
  // Only bays: the run that it starts is for others.
  const bays = new Controller({
    ...{ db, stores: bayStores, log: silentLog, owner: "bays" },
    handlers: new Map([["bay", withContext(bayHandlers, () => ({}))]]),
  });
  const older = new Controller({
    ...{ db, stores: olderStores, log: silentLog, owner: "older" },
    handlers: new Map([["run", () => () => Promise.reject(new Error("the older replica has begun it"))]]),
  });
  const running = [bays.run(stop.signal), older.run(stop.signal)];
  await requestMaintenance(db, "b-1");
  const work = () =>
    db.query<{ id: string; failures: number; cause: string; pause: number }>(
      `select id, failures, last_cause as cause, extract(epoch from wake_at - now())::float8 as pause from work
        where kind = 'run' and lease_owner is null and last_cause is not null`,
    );
  const [left] = await eventually(async () => (await work()).length > 0 && (await work()), {
    what: "the older replica leaves the run",
    seen: async () => JSON.stringify(await db.query("select * from work")),
  });
  expect(left).toMatchObject({ failures: 0, cause: "not_on_this_server" });
  expect(left?.pause).toBeLessThanOrEqual(10);
  const { things, unreadable } = await storeOf(olderStores, "run").load(db, [left?.id ?? ""]);
  expect(things).toEqual([]);
  expect(unreadable).toMatchObject([{ isForAnother: true, error: expect.stringContaining("bay") }]);
  stop.abort();
  await Promise.all(running);

  // As if the pause were over.
  await db.execute("update work set wake_at = now() where kind = 'run'");
  const newer = await startBayEngine(db, { instance: "newer" });
  await eventually(async () => (await db.query("select 1 from bays where state = 'ready'")).length > 0, {
    what: "the newer replica carries the run out",
    within: 30_000,
    seen: async () => JSON.stringify(await db.query("select id, state, facts from runs")),
  });
  expect(await db.query("select distinct state from runs")).toEqual([{ state: "SUCCEEDED" }]);
  await newer.stop();
});
