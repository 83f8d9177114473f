import { beforeEach, describe, expect, test } from "vitest";
import { ReplicaPresence } from "../../src/engine/replica-presence.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { milliseconds } from "../../src/kernel/time/duration.ts";
import type { ServiceDeps } from "../../src/services/call/deps.ts";
import { drainReplicas, resumeReplicas, setReplicaLogLevel } from "../../src/services/system/replicas.ts";
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

describe("orders to a replica", () => {
  const caller = { name: "ann", roles: ["admin"], address: null } as const;
  const deps = () => ({ db: database.db, maxFindByIds: 5 }) as unknown as ServiceDeps;
  const asFound = async (...ids: string[]) => (await listReplicas(database.db)).filter(({ id }) => ids.includes(id));
  beforeEach(async () => {
    await database.db.execute("delete from replicas");
    for (const id of ["aaaa-1", "aaaa-2", "bbbb-1"])
      await noteReplica(database.db, { ...own(id), host: `host-${id[0]}` }, { stopping: false });
  });

  test("to drain are for all that are named or for none, reach it with its next beat, and end when it is resumed", async () => {
    await expect(drainReplicas(deps(), caller, { names: ["bbbb", "cccc"], force: false })).rejects.toMatchObject({
      kind: "not_found",
      message: 'replicas[1]: there is no replica "cccc"',
    });
    expect(await asFound("bbbb-1")).toMatchObject([{ draining: false }]);
    expect(await drainReplicas(deps(), caller, { names: ["host-b", "aaaa-1", "bbbb"], force: false })).toMatchObject([
      { id: "aaaa-1", draining: true },
      { id: "bbbb-1", draining: true },
    ]);
    expect(await noteReplica(database.db, own("aaaa-1"), { stopping: false })).toEqual({
      draining: true,
      logLevel: null,
    });
    await resumeReplicas(deps(), caller, ["aaaa-1"]);
    expect(await noteReplica(database.db, own("aaaa-1"), { stopping: false })).toMatchObject({ draining: false });
    const events = await database.db.query<{ actor: string; data: object }>(
      "select actor, data from journal where kind = 'replica' and id = 'aaaa-1' order by epoch, xid, seq",
    );
    expect(events.map(({ data }) => data)).toMatchObject([{ draining: true }, { draining: false }]);
  });

  test("that leave nobody to work are refused, unless somebody means it", async () => {
    const names = ["aaaa-1", "aaaa-2", "bbbb-1"];
    await drainReplicas(deps(), caller, { names: names.slice(0, 2), force: false });
    await expect(drainReplicas(deps(), caller, { names: ["bbbb-1"], force: false })).rejects.toMatchObject({
      kind: "failed_precondition",
      message: "replicas: no replica would be left to work",
    });
    await drainReplicas(deps(), caller, { names: ["bbbb-1"], force: true });
    expect((await asFound(...names)).every(({ draining }) => draining)).toBe(true);
  });

  test.each([
    [["aaaa"], "invalid_argument", 'replicas[0]: "aaaa" is aaaa-1, aaaa-2: name one by its id'],
    [["gone"], "failed_precondition", 'replicas[0]: replica "gone" is lost'],
    [[], "invalid_argument", "replicas: between 1 and 5 are required"],
  ] as const)("to %j are refused, and change nothing", async (names, kind, message) => {
    await noteReplica(database.db, own("gone"), { stopping: false });
    await database.db.execute("update replicas set seen_at = now() - interval '11 seconds' where id = 'gone'");
    await expect(drainReplicas(deps(), caller, { names, force: true })).rejects.toMatchObject({ kind, message });
    expect((await asFound("aaaa-1", "aaaa-2", "gone")).some(({ draining }) => draining)).toBe(false);
  });

  test("to log more hold for a time, for one or for all", async () => {
    const set = (names: readonly string[], level: string, seconds = 60) =>
      setReplicaLogLevel(deps(), caller, { names, level, seconds });
    const levels = async () => (await asFound("aaaa-1", "bbbb-1")).map(({ logLevel }) => logLevel);
    await set(["bbbb"], "debug");
    expect(await levels()).toEqual([null, "debug"]);
    await set([], "warn");
    expect(await levels()).toEqual(["warn", "warn"]);
    await database.db.execute("update replicas set log_level_until = now() where id = 'bbbb-1'");
    expect(await levels()).toEqual(["warn", null]);
    expect(await noteReplica(database.db, own("bbbb-1"), { stopping: false })).toEqual({
      draining: false,
      logLevel: null,
    });
    await set([], "");
    expect(await levels()).toEqual([null, null]);
    await expect(set([], "loud")).rejects.toMatchObject({
      message: expect.stringMatching(/^level: must be one of trace, /),
    });
    await expect(set([], "debug", 86_401)).rejects.toMatchObject({ message: "for_seconds: must be from 0 to 86400" });
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
    const connects = () =>
      db.query("select 1").then(
        () => true,
        () => false,
      );
    try {
      await eventually(connects, {
        what: "the one connection is made, which may take longer than callers wait for it",
      });
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
