import { afterEach, beforeEach, expect, test } from "vitest";
import { JournalTail } from "../../../src/engine/watch.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { hours } from "../../../src/kernel/time/duration.ts";
import type { WatchItem } from "../../../src/store/lifecycle/event-source.ts";
import * as journal from "../../../src/store/lifecycle/journal.ts";
import { removeOldEntries } from "../../../src/store/lifecycle/journal-retention.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import type { Database } from "../../../src/store/postgres/database.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { sealJournal, testSealKey } from "../../support/journal/sealed-journal.ts";

let database: TestDatabase;
let tail: JournalTail;
let stop: AbortController;
let running: Promise<unknown>;

beforeEach(async () => {
  database = await createTestDatabase();
  tail = new JournalTail({ db: database.db, log: silentLog });
  stop = new AbortController();
  running = Promise.all([tail.run(stop.signal), database.db.listen("millwright", () => tail.nudge(), stop.signal)]);
});
afterEach(async () => {
  stop.abort();
  await running;
  await database.drop();
});

async function write(ids: readonly string[], version: number, kind = "power_shelf"): Promise<void> {
  await database.db.transaction(async (tx) => {
    await lockThings(
      tx,
      ids.map((id) => ({ kind, id })),
    );
    await journal.append(
      tx,
      ids.map((id) => ({
        kind,
        id,
        version,
        type: "transition",
        from: null,
        to: null,
        owner: null,
        actor: "test",
        reason: null,
        data: {},
      })),
    );
    await journal.announce(tx);
  });
}

/** Its first event counts as past: it does as soon as nothing is under way that began before it, in any database of the server. */
const untilOld = (id: string) =>
  eventually(async () => (await journal.readAfter(database.db, "0.0.0", 1)).find((row) => row.id === id), {
    what: `the first event of ${id} is past`,
  });

/** The next events of a follower, bookmarks left out. */
async function take(items: AsyncIterator<WatchItem>, count: number): Promise<string[]> {
  const seen: string[] = [];
  while (seen.length < count) {
    const { value, done } = await items.next();
    if (done) throw new Error(`the stream ended after ${seen.length} events`);
    if (value.type === "event") seen.push(`${value.row.id}@${value.row.version}`);
  }
  return seen;
}

const from = (cursor: Parameters<JournalTail["follow"]>[0], filter: journal.JournalFilter = {}) =>
  tail.follow(cursor, filter, stop.signal)[Symbol.asyncIterator]();

test("a follower from now gets a bookmark first, then only what comes after it", async () => {
  await write(["a"], 1);
  await untilOld("a");
  const items = from("now");
  const first = await items.next();
  expect(first.value).toMatchObject({ type: "bookmark" });
  await write(["a"], 2);
  expect((await take(items, 1)).at(-1)).toBe("a@2");
});

test("a follower from the oldest gets everything once, then what comes", async () => {
  for (let version = 1; version <= 50; version += 1) await write(["a", "b"], version);
  const items = from("oldest");
  const past = await take(items, 100);
  expect(new Set(past).size).toBe(100);
  await write(["c"], 1);
  expect(await take(items, 1)).toEqual(["c@1"]);
});

test("a cursor continues where it was taken, also when the window has moved on", async () => {
  const items = from("oldest");
  await write(["a"], 1);
  const { value } = await items.next();
  if (value?.type !== "event") throw new Error("expected an event");
  for (let version = 2; version <= 30; version += 1) await write(["a"], version);
  const again = from({ cursor: value.row.cursor });
  expect(await take(again, 29)).toEqual(Array.from({ length: 29 }, (_, index) => `a@${index + 2}`));
});

test("a filter is applied by the server, and what it leaves out does not hold the follower back", async () => {
  const items = from("oldest", { kinds: ["rack"] });
  for (let version = 1; version <= 20; version += 1) await write(["a"], version);
  await write(["r"], 1, "rack");
  expect(await take(items, 1)).toEqual(["r@1"]);
});

test("a follower that stands still while thousands of events pass gets each of them once, in order", async () => {
  const items = from("oldest");
  await write(["slow"], 1);
  expect(await take(items, 1)).toEqual(["slow@1"]);
  const many = Array.from({ length: 500 }, (_, index) => `t${index}`);
  for (let version = 1; version <= 30; version += 1) await write(many, version); // past the window, twice over
  const keepingUp = from("now");
  await keepingUp.next();
  const seen = await take(items, 15_000);
  expect(new Set(seen).size).toBe(15_000);
  const versions = new Map<string, number>();
  for (const event of seen) {
    const [id = "", version = ""] = event.split("@");
    expect(Number(version)).toBe((versions.get(id) ?? 0) + 1);
    versions.set(id, Number(version));
  }
});

test("followers end when they are told to", async () => {
  const own = new AbortController();
  const items = tail.follow("oldest", {}, own.signal)[Symbol.asyncIterator]();
  const next = items.next();
  own.abort();
  expect(await next).toEqual({ done: true, value: undefined });
  expect(tail.followers).toBe(0);
});

test("a cursor of what has not happened here is refused, since what comes next would count as told", async () => {
  const items = from("now");
  const { value } = await items.next();
  if (value?.type !== "bookmark") throw new Error("expected a bookmark");
  const [epoch = "", xid = ""] = value.cursor.split(".");
  for (const cursor of [`${epoch}.${xid}000.1`, `${Number(epoch) + 1}.1.1`])
    await expect(from({ cursor, field: "from_cursor" }).next()).rejects.toMatchObject({
      kind: "failed_precondition",
      message: expect.stringContaining("from_cursor: is later than the last event of this server"),
      detail: { field: "from_cursor", next: "watch again without from_cursor" },
    });
  const again = from({ cursor: value.cursor });
  await write(["a"], 1);
  expect(await take(again, 1)).toEqual(["a@1"]);
});

test("a cursor that history told while something older was still being written is taken", async () => {
  const older = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const writing = database.db.transaction(async (tx) => {
    await tx.query("select pg_current_xact_id()");
    begun.resolve();
    await older.promise;
  });
  await begun.promise;
  await write(["a"], 1);
  const [row] = await journal.listHistory(database.db, {
    key: { kind: "power_shelf", id: "a" },
    limit: 1,
    types: [],
    newestFirst: true,
    after: null,
  });
  const items = from({ cursor: row?.cursor ?? "" });
  const next = take(items, 1);
  older.resolve();
  await writing;
  await write(["a"], 2);
  expect(await next).toEqual(["a@2"]);
});

test("a cursor from before what is kept is refused, since events after it are gone", async () => {
  await write(["a"], 1);
  const first = await untilOld("a"); // nobody has it in memory
  await write(["a"], 2);
  await write(["a"], 3);
  await database.db.execute("update journal set at = now() - interval '2 days' where version <= 2");
  await sealJournal(database.db);
  const forget = { retention: hours(24), most: 100, sealKey: testSealKey };
  expect(await removeOldEntries(database.db, forget)).toEqual({ examined: 2, removed: 2 });
  await expect(take(from({ cursor: first.cursor }), 1)).rejects.toMatchObject({ kind: "failed_precondition" });
  expect(await take(from("oldest"), 1)).toEqual(["a@3"]);
});

test("there are so many followers at most; the next one is told, and gets the place of one that left", async () => {
  const small = new JournalTail({ db: database.db, log: silentLog, most: 2 });
  const leaving = new AbortController();
  const [first, second] = [leaving.signal, stop.signal].map((signal) => small.follow("now", {}, signal));
  await Promise.all([first?.next(), second?.next()]);
  const third = () => small.follow("now", {}, stop.signal).next();
  await expect(third()).rejects.toMatchObject({ kind: "exhausted" });
  expect(small.followers).toBe(2);
  await first?.return(undefined);
  expect(await third()).toMatchObject({ value: { type: "bookmark" } });
});

test("a follower that is behind has a hundred events in hand, not thousands", async () => {
  await write(
    Array.from({ length: 350 }, (_, index) => `t${index}`),
    1,
  );
  // Writers in other databases of the same server hold readers back for a moment, and nobody would wake this follower.
  await expect
    .poll(async () => (await journal.readAfter(database.db, "0.0.0", 1_000)).length, { timeout: 30_000 })
    .toBe(350);
  const pages: number[] = [];
  const db: Database = {
    ...database.db,
    query: async <Row extends object>(...query: Parameters<Database["query"]>) => {
      const rows = await database.db.query<Row>(...query);
      pages.push(rows.length);
      return rows;
    },
  };
  const slow = new JournalTail({ db, log: silentLog });
  expect(await take(slow.follow("oldest", {}, stop.signal), 350)).toHaveLength(350);
  expect(Math.max(...pages)).toBe(100);
});
