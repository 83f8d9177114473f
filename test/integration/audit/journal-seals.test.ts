import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { runSealing } from "../../../src/engine/journal-sealing.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { systemClock } from "../../../src/kernel/time/clock.ts";
import { hours } from "../../../src/kernel/time/duration.ts";
import { exportJournal } from "../../../src/services/audit/export-journal.ts";
import { verifyJournal } from "../../../src/services/audit/verify-journal.ts";
import { openSecretStore, type SecretStore } from "../../../src/store/access/secrets.ts";
import { append, type JournalEntry } from "../../../src/store/lifecycle/journal.ts";
import { removeOldEntries } from "../../../src/store/lifecycle/journal-retention.ts";
import { newestSeal, openSealKey, sealNext } from "../../../src/store/lifecycle/seals/journal-seals.ts";
import { headText } from "../../../src/store/lifecycle/seals/seal-chain.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { sealJournal } from "../../support/journal/sealed-journal.ts";

let database: TestDatabase;
let scratch: string;
let secrets: SecretStore;
beforeEach(async () => {
  database = await createTestDatabase();
  scratch = mkdtempSync(join(tmpdir(), "millwright-seals-"));
  secrets = openSecretStore({ keyFile: join(scratch, "key") });
  await secrets.checkKeys(database.db);
});
afterEach(async () => {
  await database.drop();
  rmSync(scratch, { recursive: true });
});

const entry = (id: string, version: number): JournalEntry => ({
  ...{ kind: "power_shelf", id, version, type: "created", from: null, to: "ready", owner: null },
  ...{ actor: "kim", address: "192.0.2.1", reason: `why ${version}`, data: { number: 1.5, text: "ü\n" } },
});
const write = (id: string, ...versions: number[]) =>
  database.db.transaction((tx) =>
    append(
      tx,
      versions.map((version) => entry(id, version)),
    ),
  );
const sealKey = () => openSealKey(database.db, secrets)();
const seal = () => sealJournal(database.db, sealKey);
const deps = () => ({ db: database.db, secrets, stores: allStores, maxFindByIds: 100 });
const head = async () => headText((await newestSeal(database.db)) ?? { number: 0, mac: Buffer.alloc(0) });

/** All pages, as one. */
async function verify(given = "") {
  const sum = { seals: 0, entries: 0, removed: 0 };
  for (let afterSeal = 0; ; ) {
    const page = await verifyJournal(deps(), { afterSeal, head: afterSeal === 0 ? given : "" });
    sum.seals += page.seals;
    sum.entries += page.entries;
    sum.removed += page.removed;
    if (page.nextSeal === 0)
      return { ...sum, problem: page.problem ?? null, head: page.head?.text, unsealed: page.unsealed };
    afterSeal = page.nextSeal;
  }
}
const problemNow = async (given = "") => {
  const { problem } = await verify(given);
  return problem && { kind: problem.kind, seal: problem.seal, id: problem.entry?.id, version: problem.entry?.version };
};

/** Three seals of three entries each. */
async function sealedJournal(): Promise<void> {
  for (const id of ["a", "b", "c"]) {
    await write(id, 1, 2, 3);
    await seal();
  }
}

test("a journal that nobody touched is as it was sealed", async () => {
  await sealedJournal();
  expect(await verify()).toMatchObject({ seals: 3, entries: 9, removed: 0, problem: null, head: await head() });
  await write("d", 1);
  expect(await verify()).toMatchObject({ problem: null, unsealed: { entries: 1 } });
});

describe("whoever writes to the database is found out", () => {
  const alter = (sql: string) => database.db.execute(sql);

  test.each([
    ["kind", "'machine'"],
    ["version", "7"],
    ["type", "'deleted'"],
    ["from_state", "''"],
    ["to_state", "'error'"],
    ["owner", "'caller'"],
    ["actor", "'alex'"],
    ["address", "'192.0.2.2'"],
    ["reason", "null"],
    ["data", `data || '{"number": 1.6}'`],
    ["at", "at + interval '1 microsecond'"],
  ])("who changes %s of an entry", async (column, value) => {
    await sealedJournal();
    await alter(`update journal set ${column} = ${value} where id = 'b' and version = 2`);
    expect(await problemNow()).toMatchObject({ kind: "entry_changed", seal: 2, id: "b" });
  });

  test("who changes whose entry it is", async () => {
    await sealedJournal();
    await alter("update journal set id = 'z' where id = 'b' and version = 3");
    expect(await problemNow()).toEqual({ kind: "entry_changed", seal: 2, id: "z", version: 3 });
  });

  test("who deletes an entry, or all of a seal", async () => {
    await sealedJournal();
    await alter("delete from journal where id = 'b' and version = 2");
    expect(await problemNow()).toEqual({ kind: "entry_deleted", seal: 2, id: "b", version: 1 });
    await alter("delete from journal where id = 'b'");
    expect(await problemNow()).toEqual({ kind: "entry_deleted", seal: 2, id: undefined, version: undefined });
  });

  test("who inserts an entry between others", async () => {
    await sealedJournal();
    await alter(`insert into journal (epoch, xid, seq, kind, id, version, type, actor) overriding system value
                 select epoch, xid, seq * 1000000, 'power_shelf', 'forged', 1, 'created', 'alex' from journal
                  where id = 'b' and version = 2`);
    const found = await problemNow();
    expect(found).toMatchObject({ kind: "entry_inserted", id: "forged" });
  });

  test("who deletes the newest seal, and lets the server seal what is there now", async () => {
    await sealedJournal();
    const logged = await head();
    await alter("delete from journal_seals where number = 3");
    await alter("update journal set actor = 'alex' where id = 'c'");
    await seal();
    expect(await problemNow()).toBeNull(); // the seals alone cannot know
    expect(await problemNow(logged)).toMatchObject({ kind: "head_missing", seal: 3 });
  });

  test("who deletes a seal between others, or changes one", async () => {
    await sealedJournal();
    await alter(
      "update journal_seals set leaves = (select leaves from journal_seals where number = 1) where number = 3",
    );
    expect(await problemNow()).toMatchObject({ kind: "seal_changed", seal: 3 });
    await alter("delete from journal_seals where number = 2");
    expect(await problemNow()).toMatchObject({ kind: "seal_missing", seal: 2 });
    await alter("delete from journal_seals where number = 1");
    expect(await problemNow()).toMatchObject({ kind: "seal_missing", seal: 1 });
  });

  test.each([
    "entries = entries + 1",
    "sealed_at = sealed_at - interval '1 s'",
    "mac = sha256(mac)",
    "to_seq = to_seq + 1",
  ])("who sets %s of a seal", async (change) => {
    await sealedJournal();
    await alter(`update journal_seals set ${change} where number = 2`);
    expect(await problemNow()).toMatchObject({ kind: "seal_changed", seal: 2 });
  });

  test("who puts an older copy of the database in place", async () => {
    await sealedJournal();
    const logged = await head();
    await alter("delete from journal where id = 'c'");
    await alter("delete from journal_seals where number = 3"); // as the backup of a minute ago has it
    expect(await problemNow()).toBeNull();
    expect(await problemNow(logged)).toMatchObject({ kind: "head_missing", seal: 3 });
  });

  test("a replica that is at work sees that a seal was replaced, and says so once", async () => {
    const [errors, heads, counted] = [[] as string[], [] as unknown[], [] as string[]];
    const stop = new AbortController();
    await sealedJournal();
    const logged = await head();
    const running = runSealing(
      {
        ...{ db: database.db, clock: systemClock, sealKey },
        log: {
          ...silentLog,
          info: (fields) => void heads.push((fields as { head: string }).head),
          error: (_, line) => void errors.push(line),
        },
        metrics: { count: (name) => void counted.push(name) },
      },
      stop.signal,
    );
    onTestFinished(() => stop.abort());
    await eventually(async () => heads.length > 0, { what: "the head is logged" });
    expect(heads).toEqual([logged]);
    await alter("delete from journal_seals where number = 3");
    await eventually(async () => counted.length > 0, { what: "the loss is counted" });
    await write("d", 1);
    await eventually(async () => (await verify()).unsealed?.entries === 0, { what: "it seals on" });
    stop.abort();
    await running;
    expect(counted).toEqual(["millwright_journal_seals_lost_total"]);
    expect(errors).toEqual([expect.stringContaining("a seal of the journal is gone")]);
    expect(heads.at(-1)).toBe(await head()); // the last one is logged when it stops
  });

  test("who removes the key to have another one made", async () => {
    await sealedJournal();
    await alter("delete from secrets where name = 'journal-seals/key'");
    await expect(verify()).rejects.toMatchObject({
      kind: "failed_precondition",
      message: expect.stringContaining("key"),
    });
    await expect(sealKey()).rejects.toMatchObject({ kind: "failed_precondition" });
  });
});

describe("retention", () => {
  const age = () => database.db.execute("update journal set at = at - interval '3 days'");
  const forget = () => removeOldEntries(database.db, { retention: hours(24), most: 5_000, sealKey });

  test("signs for what it removes, once and again, and what stays is verified", async () => {
    for (const id of ["a", "b"]) await write(id, 1, 2, 3);
    await age();
    await seal();
    expect(await forget()).toEqual({ examined: 6, removed: 4 });
    expect(await verify()).toMatchObject({ entries: 6, removed: 4, problem: null });
    await write("a", 4);
    await seal();
    await database.db.execute("update journal set actor = 'alex' where id = 'b'");
    expect(await problemNow()).toMatchObject({ kind: "entry_changed", id: "b", version: 3 });
  });

  test("signs for nothing that was changed before: its removal hides nothing", async () => {
    await write("a", 1, 2, 3);
    await age();
    await seal();
    await database.db.execute("update journal set actor = 'alex' where version = 1");
    expect(await forget()).toMatchObject({ removed: 2 });
    expect(await problemNow()).toMatchObject({ kind: "entry_deleted", seal: 1 });
  });

  test("removes nothing that no seal covers yet", async () => {
    await write("a", 1, 2, 3);
    await age();
    expect(await forget()).toEqual({ examined: 0, removed: 0 });
  });

  test("cannot be claimed by who has only the database", async () => {
    await sealedJournal();
    await database.db.execute("delete from journal where id = 'b'");
    await database.db.execute(
      "update journal_seals set removed = '\\x07', removed_mac = sha256(removed) where number = 2",
    );
    expect(await problemNow()).toMatchObject({ kind: "seal_changed", seal: 2 });
  });
});

test("replicas that seal at once make one chain", { tags: ["race"] }, async () => {
  const key = await sealKey();
  const sealing = Promise.all(
    [1, 2, 3].map(async () => {
      for (let round = 0; round < 30; round += 1) await sealNext(database.db, key, { now: new Date(), most: 2 });
    }),
  );
  const writing = Promise.all(
    ["a", "b", "c"].map(async (id) => {
      for (let version = 1; version <= 20; version += 1) await write(id, version);
    }),
  );
  await Promise.all([sealing, writing]);
  await seal();
  expect(await verify()).toMatchObject({ entries: 60, problem: null });
});

test("a long journal is verified in pages", async () => {
  await database.db.execute(
    `insert into journal (epoch, kind, id, version, type, actor)
     select 1, 'power_shelf', 'a', n, 'created', 'kim' from generate_series(1, 25000) n`,
  );
  const key = await sealKey();
  for (let sealed = 0; sealed < 25_000; )
    sealed += (await sealNext(database.db, key, { now: new Date(), most: 700 }))?.entries ?? 0;
  const first = await verifyJournal(deps(), { afterSeal: 0, head: "" });
  expect(first.entries).toBeGreaterThanOrEqual(10_000);
  expect(first.entries).toBeLessThan(11_000);
  expect(await verify()).toMatchObject({ entries: 25_000, problem: null });
  await database.db.execute("update journal set reason = 'x' where version = 24000");
  expect(await problemNow()).toMatchObject({ kind: "entry_changed", version: 24_000 });
});

test("a head or a page that nobody gave out is refused", async () => {
  for (const given of ["1", "0:ab", `1:${"z".repeat(64)}`])
    await expect(verifyJournal(deps(), { afterSeal: 0, head: given })).rejects.toMatchObject({
      kind: "invalid_argument",
    });
  await expect(verifyJournal(deps(), { afterSeal: -1, head: "" })).rejects.toMatchObject({ kind: "invalid_argument" });
  await expect(verifyJournal(deps(), { afterSeal: 2 ** 60, head: "" })).rejects.toMatchObject({
    kind: "invalid_argument",
  });
});

describe("the export", () => {
  const all = async (range: { since?: Date; until?: Date } = {}) => {
    const read: string[] = [];
    for (let [after, isEnd] = ["", false]; !isEnd; ) {
      const request = { since: range.since ?? null, until: range.until ?? null, after, pageSize: 2 };
      const page = await exportJournal(deps(), request);
      expect(page.rows.length).toBeLessThanOrEqual(2);
      read.push(...page.rows.map(({ id, version }) => `${id}@${version}`));
      [after, isEnd] = [page.next, page.isEnd];
    }
    return read;
  };

  test("has every entry once, in order, and those of a time alone", async () => {
    await sealedJournal();
    expect(await all()).toEqual(["a", "b", "c"].flatMap((id) => [1, 2, 3].map((version) => `${id}@${version}`)));
    const [{ at } = { at: new Date(0) }] = await database.db.query<{ at: Date }>(
      "select min(at) as at from journal where id = 'b'",
    );
    expect((await all({ since: at })).slice(0, 3)).toEqual(["b@1", "b@2", "b@3"]);
    expect((await all({ until: at })).at(-1)).toBe("a@3");
    expect(await all({ since: new Date(Date.now() + 1_000) })).toEqual([]);
  });
});
