import { describe, expect, test } from "vitest";
import { ReplicaPresence } from "../../src/engine/replica-presence.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { milliseconds } from "../../src/kernel/time/duration.ts";
import { openDatabase } from "../../src/store/postgres/database.ts";
import { listReplicas, noteReplica } from "../../src/store/replica/replicas.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const own = (id: string) => ({ id, host: "host-1", version: "1.2.3", commit: "abc", schema: "0099" });

async function withPresence(
  { id, max = 4 }: { readonly id: string; readonly max?: number },
  use: (presence: ReplicaPresence, db: ReturnType<typeof openDatabase>) => Promise<void>,
): Promise<void> {
  const db = openDatabase(database.url, { log: silentLog, applicationName: "replica", max });
  const presence = new ReplicaPresence({ db, log: silentLog, own: own(id), onTime() {}, patience: milliseconds(0) });
  const stopping = new AbortController();
  const running = presence.run(stopping.signal);
  try {
    await use(presence, db);
  } finally {
    stopping.abort();
    await running;
    await db.close();
  }
}

describe("a replica", () => {
  test("is listed with what it works on while it is at work, and no more once it has ended", async () => {
    const find = async () => (await listReplicas(database.db)).find(({ id }) => id === "r-1");
    await withPresence({ id: "r-1" }, async (presence) => {
      await database.db.execute(
        `insert into work (kind, id, wake_at, lease_until, lease_owner) values
           ('run', 'a', now(), now() + interval '1 minute', 'r-1'), ('run', 'b', now(), now() + interval '1 minute', 'r-1'),
           ('rack', 'c', now(), now() - interval '1 minute', 'r-1')`,
      );
      const listed = { ...own("r-1"), isLiving: true, stopping: false, working: { run: 2 } };
      await eventually(async () => expect(await find()).toMatchObject(listed), { what: "it is listed" });
      presence.stopping();
      await eventually(async () => expect(await find()).toMatchObject({ stopping: true }), { what: "it stops" });
    });
    expect(await find()).toBeUndefined();
  });

  test("that is killed shows as lost, and is forgotten after a day", async () => {
    await noteReplica(database.db, own("killed"), { stopping: false });
    await database.db.execute("update replicas set seen_at = now() - interval '11 seconds' where id = 'killed'");
    expect(await listReplicas(database.db)).toMatchObject([{ id: "killed", isLiving: false }]);
    await database.db.execute("update replicas set seen_at = now() - interval '25 hours' where id = 'killed'");
    await noteReplica(database.db, own("other"), { stopping: false });
    expect((await listReplicas(database.db)).map(({ id }) => id)).toEqual(["other"]);
  });
});

describe("a database that takes no writes", () => {
  const setReadOnly = (value: "on" | "off") =>
    database.db.execute(`alter database ${database.name} set default_transaction_read_only = ${value}`);

  test("since it is read-only is told, with the cause, and so is its end", async () => {
    await withPresence({ id: "r-2" }, async (presence, db) => {
      expect(presence.trouble()).toBeNull();
      await setReadOnly("on");
      try {
        // Connections of before keep what they began with.
        await database.db.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'replica'",
        );
        await eventually(async () => expect(presence.trouble()).toContain("it is read-only: a standby"), {
          what: "it is told",
        });
        await expect(db.execute("delete from replicas")).rejects.toMatchObject({
          kind: "unavailable",
          message: expect.stringContaining("the database takes no writes: it is read-only"),
        });
        await expect(db.transaction((tx) => tx.execute("delete from replicas"))).rejects.toMatchObject({
          kind: "unavailable",
        });
      } finally {
        await setReadOnly("off");
      }
      await eventually(async () => expect(presence.trouble()).toBeNull(), { what: "it takes writes again" });
    });
  });

  test("callers that get no connection are told that all are in use, and with which setting", async () => {
    const options = { log: silentLog, applicationName: "full", max: 1, connectTimeout: milliseconds(20) };
    const db = openDatabase(database.url, options);
    try {
      await db.transaction(async (tx) => {
        await tx.query("select 1");
        const refusal = {
          kind: "unavailable",
          message: expect.stringContaining("all 1 connections to the database are in use (database.pool_size)"),
        };
        await expect(db.query("select 1")).rejects.toMatchObject(refusal);
        await expect(db.transaction((another) => another.query("select 1"))).rejects.toMatchObject(refusal);
      });
    } finally {
      await db.close();
    }
  });

  test("since all connections are in use is told, with the setting", async () => {
    await withPresence({ id: "r-3", max: 1 }, async (presence, db) => {
      let release = () => {};
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      const holding = db.transaction(async (tx) => {
        await tx.query("select 1");
        await held;
      });
      await eventually(
        async () => expect(presence.trouble()).toMatch(/all 1 connections are in use \(database\.pool_size\)/),
        {
          what: "it is told",
        },
      );
      release();
      await holding;
      await eventually(async () => expect(presence.trouble()).toBeNull(), { what: "it takes writes again" });
    });
  });
});
