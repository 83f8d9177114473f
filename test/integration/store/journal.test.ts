// @module-tag race
import { beforeEach, describe, expect, test, vi } from "vitest";
import * as journal from "../../../src/store/lifecycle/journal.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import type { Transaction } from "../../../src/store/postgres/database.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await database.db.query("create table counted (id text primary key, version bigint not null default 0)");
});
beforeEach(async () => {
  await database.db.query("truncate journal, counted");
  await database.db.query("update journal_epoch set epoch = 1");
});
afterAll(() => database.drop());

const START = "0.0.0";
const key = (id: string) => ({ kind: "widget", id });
const entry = (id: string, version: number, more: Partial<journal.JournalEntry> = {}): journal.JournalEntry => ({
  ...key(id),
  version,
  type: "facts_changed",
  from: null,
  to: null,
  owner: null,
  actor: "test",
  reason: null,
  data: {},
  ...more,
});
const append = (...entries: journal.JournalEntry[]) => database.db.transaction((tx) => journal.append(tx, entries));
const named = (rows: readonly journal.JournalRow[]) => rows.map(({ id, version }) => `${id}@${version}`);
/** Other databases of the same server hold readers back too; so wait until nothing of ours is above the horizon. */
const settle = () =>
  vi.waitFor(
    async () => {
      const [held] = await database.db.query<{ count: number }>(
        `select count(*) from journal j join journal_epoch e using (epoch) where j.xid >= pg_snapshot_xmin(pg_current_snapshot())`,
      );
      expect(held?.count).toBe(0);
    },
    { timeout: 20_000 },
  );
const readNow = (cursor = START, filter: journal.JournalFilter = {}) =>
  journal.readAfter(database.db, cursor, 10_000, filter);
const readAll = async (cursor = START, filter: journal.JournalFilter = {}) => {
  await settle();
  return readNow(cursor, filter);
};

/** Reads on from the cursor until nothing is left, a few rows at a time. */
async function follow(cursor: string, limit: number, enough: (rows: journal.JournalRow[]) => boolean) {
  const rows: journal.JournalRow[] = [];
  for (let at = cursor; !enough(rows); ) {
    const page = await journal.readAfter(database.db, at, limit);
    rows.push(...page);
    at = page.at(-1)?.cursor ?? at;
  }
  return rows;
}

/** One transaction as the store writes them: all locks, then versions and entries. */
async function change(tx: Transaction, ids: readonly string[]): Promise<void> {
  await lockThings(tx, ids.map(key));
  const rows = await tx.query<{ id: string; version: number }>(
    `insert into counted (id, version) select id, 1 from unnest($1::text[]) as t(id)
     on conflict (id) do update set version = counted.version + 1 returning id, version`,
    [ids],
  );
  await journal.append(
    tx,
    rows.map(({ id, version }) => entry(id, version)),
  );
  await journal.announce(tx);
}

test("a follower sees every row once and each thing's versions in order, under writers whose transactions overlap", async () => {
  const things = Array.from({ length: 12 }, (_, index) => `t${index}`);
  let written = 0;
  let writing = true;
  const writer = async () => {
    for (let round = 0; round < 150; round += 1) {
      const ids = things.toSorted(() => Math.random() - 0.5).slice(0, 1 + Math.floor(Math.random() * 4));
      await database.db.transaction((tx) => change(tx, ids));
      written += ids.length;
    }
  };
  const following = follow(START, 37, (rows) => !writing && rows.length >= written);
  await Promise.all(Array.from({ length: 6 }, writer));
  writing = false;
  const rows = await following;

  expect(rows).toHaveLength(written);
  expect(new Set(rows.map(({ cursor }) => cursor)).size).toBe(written);
  for (const id of things) {
    const versions = rows.filter((row) => row.id === id).map(({ version }) => version);
    expect(versions).toEqual(versions.map((_, index) => index + 1));
  }
});

test("a transaction that is still open holds readers back, and nothing of it or after it is lost", async () => {
  await append(entry("before", 1));
  await settle();
  let whileOpen: string[] = [];
  await database.db.transaction(async (tx) => {
    await journal.append(tx, [entry("slow", 1)]);
    await append(entry("quick", 1));
    whileOpen = named(await readNow());
    expect(await journal.horizonAge(database.db)).toBeGreaterThan(0);
  });
  expect(whileOpen).toEqual(["before@1"]);
  expect(named(await readAll())).toEqual(["before@1", "slow@1", "quick@1"]);
});

test("a transaction that is undone leaves no trace and holds nobody back", async () => {
  const undone = database.db.transaction(async (tx) => {
    await journal.append(tx, [entry("undone", 1)]);
    await append(entry("kept", 1));
    throw new Error("changed its mind");
  });
  await expect(undone).rejects.toThrow("changed its mind");
  expect(named(await readAll())).toEqual(["kept@1"]);
});

test("who starts at the present cursor gets what is committed later, also by transactions that began earlier", async () => {
  await append(entry("past", 1));
  await settle();
  let cursor = "";
  await database.db.transaction(async (tx) => {
    await journal.append(tx, [entry("open", 1)]);
    cursor = await journal.currentCursor(database.db);
  });
  await append(entry("next", 1));
  expect(named(await readAll(cursor))).toEqual(["open@1", "next@1"]);
});

test("rows of one transaction come in the order in which they were appended", async () => {
  await append(entry("w", 2, { type: "request_ended" }), entry("w", 3, { type: "requested" }), entry("a", 1));
  expect(named(await readAll())).toEqual(["w@2", "w@3", "a@1"]);
});

test("a row tells everything that was appended", async () => {
  const told = { type: "transition", from: "idle", to: "busy", owner: "controller", reason: "asked", data: { a: [1] } };
  await append(entry("w", 7, told));
  const [row] = await readAll();
  expect(row).toMatchObject({ ...key("w"), version: 7, actor: "test", at: expect.any(Date), ...told });
});

test("text that a device made up is told as far as the database can hold it", async () => {
  await append(entry("w", 1, { reason: "serial \0X", data: { "ke\0y": "half \ud83d pair" } }));
  const [row] = await readAll();
  expect(row).toMatchObject({ reason: "serial \ufffdX", data: { "ke\ufffdy": "half \ufffd pair" } });
});

test("filters leave out rows, and cursors go on after those that were read", async () => {
  await append(entry("a", 1), entry("b", 1, { type: "created" }), entry("a", 2, { type: "created" }));
  expect(named(await readAll(START, { ids: ["a"] }))).toEqual(["a@1", "a@2"]);
  expect(named(await readAll(START, { types: ["created"] }))).toEqual(["b@1", "a@2"]);
  expect(named(await readAll(START, { kinds: ["gadget"] }))).toEqual([]);
  const [, middle] = await readAll();
  expect(named(await readAll(middle?.cursor))).toEqual(["a@2"]);
});

describe("after a dump was restored into a server with younger transaction ids", () => {
  const restored = async () => {
    await database.db.query(
      `insert into journal (epoch, xid, kind, id, version, type, actor)
       select 1, (pg_current_xact_id()::text::bigint + 1000000 + n)::text::xid8, 'widget', 'old', n, 'facts_changed', 'test'
         from generate_series(1, 3) n`,
    );
  };
  const epoch = async () => (await database.db.query<{ epoch: number }>("select epoch from journal_epoch"))[0]?.epoch;

  test("a new epoch puts all restored rows into the past, before everything new", async () => {
    await restored();
    expect(named(await readNow())).toEqual([]);
    await journal.startEpoch(database.db);
    await append(entry("new", 1));
    expect(named(await readAll())).toEqual(["old@1", "old@2", "old@3", "new@1"]);
    expect(await epoch()).toBe(2);
  });

  test("a cursor from before goes on in the restored rows and then in the new ones", async () => {
    await restored();
    await journal.startEpoch(database.db);
    await append(entry("new", 1));
    const [first] = await readAll();
    expect(named(await readAll(first?.cursor))).toEqual(["old@2", "old@3", "new@1"]);
  });

  test("history and the present cursor know both", async () => {
    await restored();
    await journal.startEpoch(database.db);
    const cursor = await journal.currentCursor(database.db);
    await append(entry("old", 4));
    expect(named(await readAll(cursor))).toEqual(["old@4"]);
    expect(named(await history({ newestFirst: true, limit: 2 }))).toEqual(["old@4", "old@3"]);
  });
});

const history = (page: Partial<journal.HistoryPage>) =>
  journal.listHistory(database.db, {
    key: key("old"),
    limit: 100,
    types: [],
    newestFirst: false,
    after: null,
    ...page,
  });

test("a thing's history can be paged in both directions and narrowed to types", async () => {
  for (let version = 1; version <= 5; version += 1)
    await append(
      entry("old", version, { type: version % 2 === 0 ? "transition" : "facts_changed" }),
      entry("x", version),
    );
  const all = await history({});
  expect(named(all)).toEqual(["old@1", "old@2", "old@3", "old@4", "old@5"]);
  const after = all[2]?.cursor ?? "";
  expect(named(await history({ after, limit: 1 }))).toEqual(["old@4"]);
  expect(named(await history({ after, newestFirst: true }))).toEqual(["old@2", "old@1"]);
  expect(named(await history({ types: ["transition"], newestFirst: true }))).toEqual(["old@4", "old@2"]);
});

test.each(["", "1", "1.2", "1.2.3.4", "a.b.c", "-1.2.3", "1.2.3 ", "1.2.9999999999999999999", "1;drop.2.3"])(
  "%j is refused as a cursor, by name",
  async (cursor) => {
    const refused = { kind: "invalid_argument", detail: { field: "cursor" } };
    await expect(journal.readAfter(database.db, cursor, 1)).rejects.toMatchObject(refused);
    await expect(history({ after: cursor })).rejects.toMatchObject(refused);
  },
);

test("the largest cursor that passes for one is answered, not an error of the database", async () => {
  expect(await readAll("999999999.9999999999999999999.999999999999999999")).toEqual([]);
});
