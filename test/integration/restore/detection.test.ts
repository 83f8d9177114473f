import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { silentLog } from "../../../src/kernel/log.ts";
import { append } from "../../../src/store/lifecycle/journal.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { type Database, openDatabase } from "../../../src/store/postgres/database.ts";
import { migrate } from "../../../src/store/postgres/migrate.ts";
import { RestoreWatch } from "../../../src/store/restore/restore-watch.ts";
import { findLiveReview } from "../../../src/store/restore/reviews.ts";
import {
  type DebianPostgres,
  missingPostgres,
  startDebianPostgres,
} from "../../support/counterparts/debian-postgres.ts";
import { needing } from "../../support/counterparts/needing.ts";
import { eventually } from "../../support/eventually.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

const missing = missingPostgres();
let server: DebianPostgres;
let count = 0;

beforeAll(async () => {
  if (missing === "") server = await startDebianPostgres();
});
afterAll(() => server?.close());

/** One process on the database, as far as it recognises restores. */
interface Replica {
  readonly db: Database;
  readonly watch: RestoreWatch;
  stop(): Promise<void>;
}

async function startReplica(
  database: string,
  directory: string,
  { restored = null, url = server.urlOf(database) }: { readonly restored?: string | null; readonly url?: string } = {},
): Promise<Replica> {
  const watch = new RestoreWatch({ replica: "r", directory, log: silentLog, restored });
  const db = openDatabase(url, {
    log: silentLog,
    applicationName: "test",
    check: (session) => watch.check(session),
  });
  await watch.beat(db);
  return { db, watch, stop: () => db.close() };
}

async function site(): Promise<{ readonly database: string; readonly directory: string }> {
  count += 1;
  const database = `site_${process.pid}_${count}`;
  await server.create(database);
  await migrate(server.urlOf(database), { log: silentLog });
  const directory = mkdtempSync(join(tmpdir(), "millwright-restore-"));
  onTestFinished(async () => {
    rmSync(directory, { recursive: true });
    await server.drop(database);
  });
  return { database, directory };
}

/** A server of its own with a standby, which has all of its database. */
async function startFailover() {
  const primary = await startDebianPostgres();
  const directory = mkdtempSync(join(tmpdir(), "millwright-restore-"));
  await primary.create("site");
  await migrate(primary.urlOf("site"), { log: silentLog });
  const standby = await primary.addStandby();
  const url = `postgresql://millwright@/site?host=${standby.host},${primary.host}&target_session_attrs=read-write`;
  return {
    ...{ primary, standby, directory, url },
    async [Symbol.asyncDispose]() {
      await standby.close();
      await primary.close();
      rmSync(directory, { recursive: true });
    },
  };
}

/** Its connections have ended, and each of them is found to have. */
const beatAgain = ({ watch, db }: Replica): Promise<unknown> =>
  eventually(() => watch.beat(db).then(() => true), { what: "the database is written to again" });

/** Something happens that a backup may have missed. */
const happen = (db: Database) =>
  db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: "thing", id: "t" }]);
    const entry = {
      kind: "thing",
      id: "t",
      version: 1,
      type: "happened",
      from: null,
      to: null,
      owner: null,
      actor: "test",
    };
    await append(tx, [{ ...entry, reason: null, data: {} }]);
  });

const signsOf = async ({ db }: Replica): Promise<readonly string[] | null> => {
  const review = await findLiveReview(db);
  return review ? review.facts.findings.map(({ sign }) => sign) : null;
};

describe.skipIf(missing !== "")(needing("a restored backup is recognised", missing), () => {
  test("a dump in another database of the same server", async () => {
    const { database, directory } = await site();
    const before = await startReplica(database, directory);
    await happen(before.db);
    await before.stop();
    const file = await server.dump(database);
    await server.drop(database);
    await server.create(database);
    await server.restore(file, database);
    const after = await startReplica(database, mkdtempSync(join(directory, "fresh-")));
    expect(await signsOf(after)).toContain("identity_changed");
    await after.stop();
  });

  test("the rows of a dump, put back where they came from: known from the file in the data directory alone", async () => {
    const { database, directory } = await site();
    const before = await startReplica(database, directory);
    await server.sql(
      database,
      "create table kept as table journal; create table kept_witnesses as table database_witnesses",
    );
    await happen(before.db);
    await before.watch.beat(before.db);
    await before.stop();
    await server.sql(database, "truncate journal; insert into journal overriding system value select * from kept");
    const after = await startReplica(database, directory);
    expect(await signsOf(after)).toEqual(["behind"]);
    await after.stop();
    const stranger = await startReplica(database, mkdtempSync(join(directory, "fresh-")));
    expect(await signsOf(stranger)).toEqual(["behind"]); // that review
    await stranger.stop();
  });

  test("a storage snapshot, by a replica that was connected all the time", async () => {
    const { database, directory } = await site();
    const living = await startReplica(database, directory);
    await server.stop("fast");
    await server.snapshot();
    await server.start();
    await beatAgain(living);
    await happen(living.db);
    await living.watch.beat(living.db);
    await server.stop("fast");
    await server.backToSnapshot();
    await server.start();
    // Whoever asks first finds it; the answer is not that of the backup as if nothing had happened.
    const review = await living.db
      .query("select 1")
      .catch(() => undefined)
      .then(() => findLiveReview(living.db));
    expect(review?.facts.findings.map(({ sign }) => sign)).toEqual(["behind"]);
    await living.watch.beat(living.db);
    expect(await signsOf(living)).toEqual(["behind"]); // once
    await living.stop();
  });

  test("a standby that had not followed, and lost what was confirmed", async () => {
    await using failover = await startFailover();
    const { primary, standby, directory, url } = failover;
    const living = await startReplica("site", directory, { url });
    await primary.sql("postgres", "alter system reset synchronous_standby_names");
    await primary.sql("postgres", "select pg_reload_conf()");
    await standby.stop();
    await happen(living.db);
    await living.watch.beat(living.db);
    await primary.stop("immediate");
    await standby.start();
    await standby.promote();
    await beatAgain(living);
    expect(await signsOf(living)).toEqual(["behind"]);
    await living.stop();
  });

  test("what an operator says, once for each name", async () => {
    const { database, directory } = await site();
    const start = (restored: string) => startReplica(database, mkdtempSync(join(directory, "pod-")), { restored });
    const seen = async (replica: Replica) => {
      const review = await findLiveReview(replica.db);
      await replica.stop();
      return review?.facts.findings.map(({ sign, message }) => `${sign}: ${message}`);
    };
    const endReview = () => server.sql(database, "update restore_reviews set state = 'ended'");
    // Of a database in which nothing has happened nobody has to be asked.
    const first = await start("sunday");
    await happen(first.db);
    expect(await seen(first)).toBeUndefined();
    expect(await seen(await start("sunday"))).toBeUndefined();
    const monday = ["operator: a server was started with --restored monday"];
    expect(await seen(await start("monday"))).toEqual(monday);
    // A pod that is restarted with the same name says nothing new: while the review goes on, and when it has ended.
    expect(await seen(await start("monday"))).toEqual(monday);
    // Nor does another name during the review, then or later.
    expect(await seen(await start("tuesday"))).toEqual(monday);
    await endReview();
    expect(await seen(await start("monday"))).toBeUndefined();
    expect(await seen(await start("tuesday"))).toBeUndefined();
    expect(await seen(await start("wednesday"))).toEqual(["operator: a server was started with --restored wednesday"]);
  });

  test("one of two replicas begins the review, and the other follows it", async () => {
    const { database, directory } = await site();
    const [one, two] = [
      await startReplica(database, mkdtempSync(join(directory, "one-"))),
      await startReplica(database, mkdtempSync(join(directory, "two-"))),
    ];
    await server.sql(database, "update database_witnesses set beat = beat - 1");
    await Promise.all([one.watch.beat(one.db), two.watch.beat(two.db)]);
    await Promise.all([one.watch.beat(one.db), two.watch.beat(two.db)]);
    expect(await one.db.query("select id from restore_reviews")).toHaveLength(1);
    expect(await one.db.query("select generation from database_identity")).toEqual([{ generation: 2 }]);
    expect(await signsOf(two)).toEqual(["behind"]);
    await Promise.all([one.stop(), two.stop()]);
  });

  test("the same backup restored twice", async () => {
    const { database, directory } = await site();
    const living = await startReplica(database, directory);
    const back = "update database_witnesses set beat = 0; update database_identity set generation = 1";
    await server.sql(database, back);
    await living.watch.beat(living.db);
    await server.sql(database, `${back}; update restore_reviews set state = 'ended'`);
    await living.watch.beat(living.db);
    expect(await living.db.query("select id from restore_reviews")).toHaveLength(2);
    await living.stop();
  });

  test("tokens that were revoked and are back are named", async () => {
    const { database, directory } = await site();
    const living = await startReplica(database, directory);
    const { createToken, revokeToken } = await import("../../../src/store/access/tokens.ts");
    const { id } = await createToken(living.db, { name: "leaver", roles: ["admin"], createdBy: "test" });
    await revokeToken(living.db, id, new Date());
    await living.watch.beat(living.db);
    await living.stop();
    await server.sql(database, "update tokens set revoked_at = null; update database_witnesses set beat = 0");
    const after = await startReplica(database, directory);
    expect((await findLiveReview(after.db))?.facts.returnedTokens).toMatchObject([{ id, name: "leaver" }]);
    await after.stop();
  });
});

describe.skipIf(missing !== "")(needing("it is no restore", missing), () => {
  test("when the database goes down as the power goes, with writers at work", async () => {
    const { database, directory } = await site();
    const living = await startReplica(database, directory);
    for (let round = 0; round < 3; round += 1) {
      const writing = Promise.allSettled(
        Array.from({ length: 40 }, () => happen(living.db).then(() => living.watch.note(living.db))),
      );
      await living.watch.beat(living.db);
      await server.stop("immediate");
      await writing;
      await server.start();
      await beatAgain(living);
      expect(await signsOf(living)).toBeNull();
    }
    await living.stop();
    const next = await startReplica(database, directory);
    expect(await signsOf(next)).toBeNull();
    await next.stop();
  });

  test("when a standby that followed in step takes the place of a server that dies, with writers at work", async () => {
    await using failover = await startFailover();
    const { primary, standby, directory, url } = failover;
    const living = await startReplica("site", directory, { url });
    const writing = Promise.allSettled(
      Array.from({ length: 40 }, () => happen(living.db).then(() => living.watch.note(living.db))),
    );
    await living.watch.beat(living.db);
    await primary.stop("immediate");
    await standby.promote();
    await writing;
    await beatAgain(living);
    await happen(living.db);
    await living.watch.beat(living.db);
    expect(await signsOf(living)).toBeNull();
    await living.stop();
    const next = await startReplica("site", directory, { url });
    expect(await signsOf(next)).toBeNull();
    await next.stop();
  });

  test("when a replica comes back after a day, and others went on", async () => {
    const { database, directory } = await site();
    await (await startReplica(database, directory)).stop();
    const other = await startReplica(database, mkdtempSync(join(directory, "other-")));
    for (let each = 0; each < 5; each += 1) await happen(other.db);
    await server.sql(database, "update database_witnesses set seen_at = now() - interval '1 day'");
    const back = await startReplica(database, directory);
    expect(await signsOf(back)).toBeNull();
    await Promise.all([back.stop(), other.stop()]);
  });

  test("when the server starts for the first time, or is sent to another database", async () => {
    const [one, two] = [await site(), await site()];
    const first = await startReplica(one.database, one.directory);
    await happen(first.db);
    await first.watch.beat(first.db);
    await first.stop();
    const elsewhere = await startReplica(two.database, one.directory);
    expect(await signsOf(elsewhere)).toBeNull();
    await elsewhere.stop();
  });
});
