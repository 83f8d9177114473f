// @module-tag race
import { createServer } from "node:net";
import { afterEach, describe, expect, test, vi } from "vitest";
import { silentLog } from "../../../src/kernel/log.ts";
import { seconds } from "../../../src/kernel/time/duration.ts";
import {
  isSerializationConflict,
  isUniqueViolation,
  openDatabase,
  retryOnConflict,
} from "../../../src/store/postgres/database.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

let open: TestDatabase[] = [];
afterEach(async () => {
  await Promise.all(open.map((database) => database.drop()));
  open = [];
});

async function testDatabase(options: Parameters<typeof createTestDatabase>[0] = {}) {
  const database = await createTestDatabase({ empty: true, ...options });
  open.push(database);
  return database;
}

/** Ends every other connection to the database, as a restart of the server would. */
const breakConnections = ({ db }: TestDatabase) =>
  db.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
  );

describe("values", () => {
  test("arrive as the types that the store works with", async () => {
    const { db } = await testDatabase();
    const rows = await db.query(
      `SELECT 9007199254740991::int8 AS n, ARRAY[1, NULL]::int8[] AS ns, '2026-01-02'::date AS d,
              '2026-01-02T03:04:05Z'::timestamptz AS t, '12'::xid8 AS x, '\\x01'::bytea AS b, '{"a": 1}'::jsonb AS j`,
    );
    const t = new Date("2026-01-02T03:04:05Z");
    expect(rows).toEqual([
      { n: 9007199254740991, ns: [1, null], d: "2026-01-02", t, x: "12", b: Buffer.of(1), j: { a: 1 } },
    ]);
  });

  test("a number too large to be exact is an error, not another number", async () => {
    const { db } = await testDatabase({ max: 1 });
    await expect(db.query("SELECT 9007199254740993::int8 AS n")).rejects.toThrow(
      "9007199254740993, which is too large",
    );
    expect(await db.query("SELECT 1 AS n")).toEqual([{ n: 1 }]);
  });

  test("a named statement is prepared once on each connection", async () => {
    const { db } = await testDatabase({ max: 1 });
    const statement = { name: "double", text: "SELECT $1::int * 2 AS n" };
    expect(await db.query(statement, [2])).toEqual([{ n: 4 }]);
    expect(await db.query({ ...statement, values: [3] })).toEqual([{ n: 6 }]);
    expect(await db.query("SELECT name FROM pg_prepared_statements")).toEqual([{ name: "double" }]);
  });

  test("execute tells how many rows were changed", async () => {
    const { db } = await testDatabase();
    await db.execute("CREATE TABLE t AS SELECT generate_series(1, 5) AS n");
    expect(await db.execute("DELETE FROM t WHERE n > $1", [2])).toBe(3);
  });
});

describe("a transaction", () => {
  async function withTable(options: Parameters<typeof createTestDatabase>[0] = {}) {
    const database = await testDatabase(options);
    await database.db.execute("CREATE TABLE t (n int PRIMARY KEY)");
    const content = async () =>
      (await database.db.query<{ n: number }>("SELECT n FROM t ORDER BY n")).map(({ n }) => n);
    return { ...database, database, content };
  }

  test("commits what was done in it and gives its result", async () => {
    const { db, content } = await withTable();
    expect(await db.transaction(async (tx) => tx.execute("INSERT INTO t VALUES (1), (2)"))).toBe(2);
    expect(await content()).toEqual([1, 2]);
  });

  test("leaves nothing behind when its work throws, and the connection is used again", async () => {
    const { db, content } = await withTable({ max: 1 });
    const failing = db.transaction(async (tx) => {
      await tx.execute("INSERT INTO t VALUES (1)");
      throw new Error("changed my mind");
    });
    await expect(failing).rejects.toThrow("changed my mind");
    expect(await content()).toEqual([]);
  });

  test("tells the log of what it did once that is committed, and nothing of what was rolled back", async () => {
    const told: object[] = [];
    const { db } = await withTable({ log: { ...silentLog, info: (fields) => told.push(fields) } });
    await db.transaction(async (tx) => {
      tx.logWhenCommitted({ id: "kept" }, "moved");
      expect(told).toEqual([]);
    });
    const undone = db.transaction(async (tx) => {
      tx.logWhenCommitted({ id: "undone" }, "moved");
      throw new Error("changed my mind");
    });
    await expect(undone).rejects.toThrow("changed my mind");
    expect(told).toEqual([{ id: "kept" }]);
  });

  test("notifies once when it commits; what is rolled back notifies nobody", async () => {
    const { db } = await withTable();
    const heard: string[] = [];
    const stop = new AbortController();
    await db.listen("millwright", (payload) => heard.push(payload), stop.signal);
    const undone = db.transaction(async (tx) => {
      tx.notifyWhenCommitted("millwright");
      throw new Error("changed my mind");
    });
    await expect(undone).rejects.toThrow("changed my mind");
    await db.query("select pg_notify('millwright', 'between')");
    await db.transaction(async (tx) => {
      tx.notifyWhenCommitted("millwright");
      await tx.query("select 1");
      tx.notifyWhenCommitted("millwright");
    });
    // Notices come in the order of the commits: all that was sent before is heard before this one.
    await db.query("select pg_notify('millwright', 'last')");
    await vi.waitFor(() => expect(heard).toContain("last")).finally(() => stop.abort());
    expect(heard).toEqual(["", "between", "", "last"]); // the first says that the connection was made
  });

  test("whose COMMIT fails with a notice in it leaves nothing behind, and its connection is used again", async () => {
    const { db } = await withTable({ max: 1 });
    await db.execute("CREATE TABLE late (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    const twice = db.transaction(async (tx) => {
      await tx.execute("INSERT INTO late VALUES (1), (1)");
      tx.notifyWhenCommitted("millwright");
    });
    await expect(twice).rejects.toMatchObject({ code: "23505" });
    expect(await db.query("SELECT n FROM late")).toEqual([]);
  });

  test("hands on the database's own error for a violated constraint", async () => {
    const { db } = await withTable();
    const error = await db
      .transaction((tx) => tx.execute("INSERT INTO t VALUES (1), (1)"))
      .catch((caught: unknown) => caught);
    expect(isUniqueViolation(error)).toBe(true);
    expect(isUniqueViolation(error, "t_pkey")).toBe(true);
    expect(isUniqueViolation(error, "another")).toBe(false);
  });

  test("gives its connection back, whatever ended it", async () => {
    const { db, content } = await withTable({ max: 1 });
    await db.execute("CREATE TABLE late (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    const twice = db.transaction((tx) => tx.execute("INSERT INTO late VALUES (1), (1)")); // found out by COMMIT
    await expect(twice).rejects.toMatchObject({ code: "23505" });
    await expect(db.transaction(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(await content()).toEqual([]);
  });

  test("whose connection breaks is unavailable, and the next one works", async () => {
    const { db, database, content } = await withTable();
    const broken = db.transaction(async (tx) => {
      await tx.execute("INSERT INTO t VALUES (1)");
      await breakConnections(database);
      await tx.execute("INSERT INTO t VALUES (2)");
    });
    await expect(broken).rejects.toMatchObject({ kind: "unavailable" });
    expect(await content()).toEqual([]);
  });

  test("has its timeouts set, the one for the whole of it where the server has that", async () => {
    const { db } = await testDatabase({
      statementTimeout: seconds(3),
      transactionTimeout: seconds(5),
      idleInTransactionTimeout: seconds(4),
    });
    const rows = await db.query(
      "SELECT name, setting FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout') ORDER BY name",
    );
    const [{ modern } = { modern: false }] = await db.query<{ modern: boolean }>(
      "SELECT current_setting('server_version_num')::int >= 170000 AS modern",
    );
    expect(rows).toEqual([
      { name: "idle_in_transaction_session_timeout", setting: "4000" },
      { name: "statement_timeout", setting: "3000" },
      ...(modern ? [{ name: "transaction_timeout", setting: "5000" }] : []),
    ]);
  });

  test("in conflict with another is done again, and only that", async () => {
    const { db, content } = await withTable();
    await db.execute("INSERT INTO t VALUES (1)");
    let attempts = 0;
    const increment = () =>
      db.transaction(async (tx) => {
        attempts += 1;
        await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
        const rows = await tx.query<{ n: number }>("SELECT n FROM t");
        if (attempts === 1) await db.execute("UPDATE t SET n = n + 10");
        await tx.execute("UPDATE t SET n = $1", [(rows[0]?.n ?? 0) + 1]);
      });
    await retryOnConflict(increment);
    expect(attempts).toBe(2);
    expect(await content()).toEqual([12]);

    const error = await retryOnConflict(() => db.execute("SELECT nonsense")).catch((caught: unknown) => caught);
    expect(isSerializationConflict(error)).toBe(false);
    expect(error).toMatchObject({ code: "42703" });
  });
});

describe("a failing server", () => {
  test("that takes too long is cut off", async () => {
    const { db } = await testDatabase({ statementTimeout: seconds(0.05) });
    await expect(db.query("SELECT pg_sleep(600)")).rejects.toMatchObject({ kind: "deadline_exceeded" });
  });

  test("that is not there makes each call unavailable", async () => {
    const db = openDatabase(
      { host: "127.0.0.1", port: 1, user: "u", password: "canary", database: "d" },
      { log: silentLog, applicationName: "test" },
    );
    const errors = await Promise.all(
      [db.query("SELECT 1"), db.transaction(async () => {})].map((call) => call.catch((error: unknown) => error)),
    );
    for (const error of errors) {
      expect(error).toMatchObject({
        kind: "unavailable",
        message: expect.stringContaining("the database cannot be reached"),
      });
      expect(String(error)).not.toContain("canary");
    }
    await db.close();
  });

  test("that accepts and then says nothing makes each call unavailable", async () => {
    const silent = createServer(() => {}).listen(0, "127.0.0.1");
    await new Promise((resolve) => silent.once("listening", resolve));
    const address = silent.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const db = openDatabase(
      { host: "127.0.0.1", port, user: "u", database: "d" },
      { log: silentLog, applicationName: "test", connectTimeout: seconds(0.2) },
    );
    await expect(db.query("SELECT 1")).rejects.toMatchObject({ kind: "unavailable" });
    await db.close();
    silent.close();
  });

  test("that ends idle connections is survived, and said", async () => {
    const warn = vi.fn();
    const database = await testDatabase({ log: { ...silentLog, warn } });
    await Promise.all([database.db.query("SELECT pg_sleep(0.05)"), database.db.query("SELECT pg_sleep(0.05)")]);
    await breakConnections(database);
    await expect.poll(() => warn.mock.calls.length, { timeout: 20_000 }).toBeGreaterThan(0);
    expect(await database.db.query("SELECT 1 AS n")).toEqual([{ n: 1 }]);
  });
});

describe("listening", () => {
  test("hears what is said, and after a break is made again and told that it may have missed something", async () => {
    const warn = vi.fn();
    const database = await testDatabase({ log: { ...silentLog, warn } });
    const heard: string[] = [];
    const stop = new AbortController();
    await database.db.listen("News of the day", (payload) => heard.push(payload), stop.signal);
    await database.db.query(`NOTIFY "News of the day", 'one'`);
    await expect.poll(() => heard, { timeout: 20_000 }).toEqual(["", "one"]);

    await breakConnections(database);
    await expect.poll(() => heard, { timeout: 20_000 }).toEqual(["", "one", ""]);
    expect(warn).toHaveBeenCalledWith(
      expect.objectContaining({ channel: "News of the day" }),
      expect.stringContaining("lost the connection"),
    );
    await database.db.query(`NOTIFY "News of the day", 'two'`);
    await expect.poll(() => heard, { timeout: 20_000 }).toEqual(["", "one", "", "two"]);
    stop.abort();
  });

  test("can be given up while there is no server", async () => {
    const db = openDatabase(
      { host: "127.0.0.1", port: 1, user: "u", database: "d" },
      { log: silentLog, applicationName: "test" },
    );
    const stop = new AbortController();
    const listening = db.listen("news", () => {}, stop.signal);
    stop.abort();
    await listening;
    await db.close();
  });
});
