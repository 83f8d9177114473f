import { describe, expect, test } from "vitest";
import { silentLog } from "../../../src/kernel/log.ts";
import { seconds } from "../../../src/kernel/time/duration.ts";
import { awaitDatabase } from "../../../src/store/postgres/await-database.ts";
import { openDatabase } from "../../../src/store/postgres/database.ts";
import { HostClient } from "../../../src/store/postgres/host-client.ts";
import { migrate } from "../../../src/store/postgres/migrate.ts";
import {
  type DebianPostgres,
  missingPostgres,
  type Standby,
  startDebianPostgres,
} from "../../support/counterparts/debian-postgres.ts";
import { needing } from "../../support/counterparts/needing.ts";
import { missingPgbouncer, type Pgbouncer, startPgbouncer } from "../../support/counterparts/pgbouncer.ts";
import { createTestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

const missing = missingPostgres() || missingPgbouncer();
let postgres: DebianPostgres;
const opened: Pgbouncer[] = [];
let standby: Standby | undefined;

beforeAll(async () => {
  if (missing !== "") return;
  postgres = await startDebianPostgres();
  await postgres.create("site");
}, 120_000);
afterAll(async () => {
  await Promise.all(opened.map((one) => one.close()));
  await standby?.close();
  await postgres?.close();
});

async function openPooler(poolMode: "session" | "transaction" | "statement"): Promise<string> {
  const pooler = await startPgbouncer(postgres, { poolMode });
  opened.push(pooler);
  return pooler.urlOf("site");
}

test("a connection that the server ends while nobody listens ends no process", async () => {
  const database = await createTestDatabase();
  try {
    const client = new HostClient(database.pgConfig);
    const ended = new Promise<void>((resolve) => void client.once("end", () => resolve()));
    await client.connect();
    const { rows } = await client.query("select pg_backend_pid() as pid");
    await database.db.query("select pg_terminate_backend($1)", [rows[0].pid]);
    await ended;
    await expect(client.query("select 1")).rejects.toThrow();
  } finally {
    await database.drop();
  }
});

describe.skipIf(missing !== "")(needing("a database behind pgbouncer", missing), () => {
  test("that pools transactions is refused, and what to set is said", async () => {
    const url = await openPooler("transaction");
    await expect(awaitDatabase(url, { log: silentLog })).rejects.toMatchObject({
      kind: "failed_precondition",
      message: expect.stringContaining("(pool_mode = transaction)"),
      detail: { next: expect.stringContaining("pool_mode = session") },
    });
  });

  test("that pools sessions is migrated and used, with timeouts, LISTEN and prepared statements", async () => {
    const url = await openPooler("session");
    await awaitDatabase(url, { log: silentLog });
    expect((await migrate(url, { log: silentLog })).length).toBeGreaterThan(0);
    const options = { log: silentLog, applicationName: "pooled", max: 3, statementTimeout: seconds(7) };
    const db = openDatabase(url, options);
    const stopping = new AbortController();
    try {
      const heard: string[] = [];
      await db.listen("millwright", (payload) => void heard.push(payload), stopping.signal);
      await db.query("select pg_notify('millwright', 'pooled')");
      await eventually(async () => heard.includes("pooled"), { what: "it is heard" });
      for (let time = 0; time < 3; time += 1)
        expect(await db.query({ hot: true, text: "select current_setting('statement_timeout') as is" })).toEqual([
          { is: "7s" },
        ]);
    } finally {
      stopping.abort();
      await db.close();
    }
  });
});

describe.skipIf(missing !== "")(needing("a database of several hosts", missing), () => {
  test("goes on at the standby that is promoted: all that was confirmed is there, and nothing twice", async () => {
    standby = await postgres.addStandby();
    // The standby is named first: it answers, and takes no writes.
    const url = `postgresql://millwright@/site?host=${standby.host},${postgres.host}&target_session_attrs=read-write`;
    const db = openDatabase(url, { log: silentLog, applicationName: "mover", max: 3 });
    const confirmed: number[] = [];
    let next = 0;
    const writing = new AbortController();
    const write = async () => {
      while (!writing.signal.aborted) {
        next += 1;
        const value = next;
        await db.execute("insert into written values ($1)", [value]).then(
          () => confirmed.push(value),
          (error: unknown) => expect(error).toMatchObject({ kind: "unavailable" }),
        );
      }
    };
    try {
      await db.execute("create table written (value int)");
      const writers = [write(), write()];
      const more = (count: number) =>
        eventually(async () => confirmed.length >= count, { what: `${count} are written` });
      await more(20);
      await postgres.stop("immediate");
      const before = confirmed.length;
      await standby.promote();
      await more(before + 20);
      writing.abort();
      await Promise.all(writers);
      const rows = await db.query<{ value: number }>("select value from written order by value");
      const values = rows.map(({ value }) => value);
      expect(new Set(values).size).toBe(values.length);
      expect(confirmed.filter((value) => !values.includes(value))).toEqual([]);
    } finally {
      writing.abort();
      await db.close();
    }
  });

  test("none of which takes writes is waited for, and each is told with its reason", async () => {
    const told: unknown[] = [];
    const stopping = new AbortController();
    const log = {
      ...silentLog,
      warn(fields: object) {
        told.push(fields);
        stopping.abort();
      },
    };
    const url = `postgresql://millwright@/site?host=${postgres.host},/nowhere`;
    await expect(awaitDatabase(url, { log, signal: stopping.signal })).rejects.toMatchObject({ name: "AbortError" });
    expect(told).toEqual([
      {
        error: expect.stringMatching(
          /^no host of database\.url takes writes: \/.*:5432: connect ENOENT.*; \/nowhere:5432: connect ENOENT/,
        ),
      },
    ]);
  });

  test("that is not there yet is waited for, and its coming is told", async () => {
    const told: string[] = [];
    let starting: Promise<void> | undefined;
    const log = {
      ...silentLog,
      info: (_: object, message: string) => void told.push(message),
      warn(_: object, message: string) {
        told.push(message);
        starting ??= postgres.start();
      },
    };
    await awaitDatabase(postgres.urlOf("site"), { log });
    await starting;
    expect([told[0], told.at(-1)]).toEqual(["waiting for the database", "the database answers"]);
  });

  test("a name or a password that is wrong ends the start", async () => {
    const url = `postgresql://nobody@/site?host=${standby?.host}`;
    await expect(awaitDatabase(url, { log: silentLog })).rejects.toMatchObject({
      kind: "unavailable",
      message: 'the database cannot be reached: role "nobody" does not exist',
    });
  });
});
