// @module-tag race
import { beforeEach, expect, test, vi } from "vitest";
import { type Duration, milliseconds, minutes, seconds } from "../../../src/kernel/time/duration.ts";
import type { ClaimedWork } from "../../../src/store/lifecycle/work.ts";
import * as work from "../../../src/store/lifecycle/work.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { createWidgetTable } from "../../support/widget.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await createWidgetTable(database.db);
});
beforeEach(() => database.db.query("truncate work, widgets"));
afterAll(() => database.drop());

const key = (id: string) => ({ kind: "widget", id });
const wake = (...ids: string[]) => work.wake(database.db, ids.map(key));

const claim = (options: { owner?: string; limit?: number; leaseFor?: Duration } = {}) =>
  work.claim(database.db, { owner: "a", kinds: ["widget"], limit: 100, leaseFor: seconds(30), ...options });

async function claimOne(options: { owner?: string; leaseFor?: Duration } = {}): Promise<ClaimedWork> {
  const [one, ...more] = await claim(options);
  if (!one || more.length > 0) throw new Error(`expected one claim, got ${one ? more.length + 1 : 0}`);
  return one;
}

const release = (one: ClaimedWork, after: Duration | null = null) =>
  work.release(database.db, [{ ...one, after, failures: 0, error: null }]);

interface WorkRow {
  epoch: number;
  failures: number;
  last_error: string | null;
  lease_owner: string | null;
  wake_in: number;
  due: boolean;
}
async function row(id: string): Promise<WorkRow | undefined> {
  const [found] = await database.db.query<WorkRow>(
    `select epoch, failures, last_error, lease_owner, extract(epoch from wake_at - now())::float8 as wake_in,
            greatest(wake_at, lease_until) <= now() as due
       from work where kind = 'widget' and id = $1`,
    [id],
  );
  return found;
}

/** Until the database itself says that the lease is over. */
const untilOver = (id: string) =>
  vi.waitFor(async () => expect((await row(id))?.due).toBe(true), { timeout: 20_000, interval: 5 });

test("what is woken is claimed once, and is not due while it is leased", async () => {
  await wake("w1");
  await wake("w1");
  expect(await claim()).toMatchObject([{ id: "w1", failures: 0 }]);
  expect(await claim({ owner: "b" })).toEqual([]);
});

test("a thing woken while it is handled gets exactly one more look, however often it was woken", async () => {
  await wake("w1");
  const first = await claimOne();
  for (let times = 0; times < 3; times += 1) await wake("w1");
  expect(await claim({ owner: "b" })).toEqual([]);
  await release(first);
  const second = await claimOne();
  await release(second);
  expect(await claim()).toEqual([]);
});

test("a pass that was not disturbed is the last one", async () => {
  await wake("w1");
  await release(await claimOne());
  expect(await claim()).toEqual([]);
  expect(await work.untilNextDue(database.db, ["widget"])).toBeNull();
});

test("a release with a later recheck keeps a wake-up that came meanwhile", async () => {
  await wake("w1");
  const first = await claimOne();
  await wake("w1");
  await release(first, minutes(10));
  expect((await row("w1"))?.due).toBe(true);
});

test("a wake-up before the recheck brings the look forward", async () => {
  await wake("w1");
  await release(await claimOne(), minutes(10));
  expect((await row("w1"))?.wake_in).toBeGreaterThan(500);
  expect(await work.untilNextDue(database.db, ["widget"])).toBeGreaterThan(500_000);
  await wake("w1");
  await claimOne();
});

test("renewals never lose a wake-up", async () => {
  await wake("w1");
  const first = await claimOne();
  await wake("w1");
  for (let times = 0; times < 3; times += 1) {
    const kept = await work.renew(database.db, { owner: "a", held: [{ ...first, leaseFor: seconds(30) }] });
    expect(kept).toEqual([key("w1")]);
  }
  expect(await claim({ owner: "b" })).toEqual([]);
  await release(first);
  await claimOne();
});

test("a wake-up that comes when the lease is over and not taken over yet is not lost by the late release", async () => {
  await wake("w1");
  const first = await claimOne({ leaseFor: milliseconds(1) });
  await untilOver("w1");
  await wake("w1");
  await release(first, null);
  await claimOne();
});

test("nor is it lost by a late renewal", async () => {
  await wake("w1");
  const first = await claimOne({ leaseFor: milliseconds(1) });
  await untilOver("w1");
  await wake("w1");
  await work.renew(database.db, { owner: "a", held: [{ ...first, leaseFor: seconds(30) }] });
  await release(first, null);
  await claimOne();
});

test("a dead owner's lease falls due by itself", async () => {
  await wake("w1");
  const first = await claimOne({ leaseFor: milliseconds(50) });
  const wait = await work.untilNextDue(database.db, ["widget"]);
  expect(wait).toBeLessThanOrEqual(50);
  await untilOver("w1");
  const second = await claimOne({ owner: "b" });
  expect(second.epoch).toBeGreaterThan(first.epoch);
});

test("who has lost a lease can neither release, renew nor pass the fence", async () => {
  await wake("w1");
  const old = await claimOne({ leaseFor: milliseconds(1) });
  await untilOver("w1");
  const current = await claimOne({ owner: "b" });
  await release(old, milliseconds(0));
  expect(await work.renew(database.db, { owner: "a", held: [{ ...old, leaseFor: minutes(5) }] })).toEqual([]);
  const passed = (held: ClaimedWork) => database.db.transaction((tx) => work.fence(tx, [held]));
  expect(await passed(old)).toEqual([]);
  expect(await passed(current)).toEqual([key("w1")]);
  expect(await row("w1")).toMatchObject({ lease_owner: "b", due: false });
});

test("a lease of a removed thing is worth nothing on the thing that came again under its id", async () => {
  await wake("w1");
  const old = await claimOne();
  await work.forget(database.db, [key("w1")]);
  await wake("w1");
  const current = await claimOne({ owner: "b" });
  expect(current.epoch).toBeGreaterThan(old.epoch);
  await release(old, milliseconds(0));
  expect(await row("w1")).toMatchObject({ lease_owner: "b", due: false });
});

test("a lease that was given back is not given back a second time", async () => {
  await wake("w1");
  const first = await claimOne();
  await release(first, null);
  await wake("w1");
  await release(first, minutes(10));
  expect((await row("w1"))?.due).toBe(true);
});

test("leases in one's name that one does not know of can be given back, and only those", async () => {
  await wake("known", "unknown", "foreign");
  const claimed = await claim({ limit: 2 });
  await claim({ owner: "b" });
  const [held] = claimed;
  if (!held) throw new Error("nothing was claimed");
  expect(await work.releaseUnheld(database.db, { owner: "a", held: [held] })).toBe(1);
  const again = await claim();
  expect(again.map(({ id }) => id)).toEqual(claimed.slice(1).map(({ id }) => id));
});

test("failures and the last error are kept with the work until a pass goes well", async () => {
  await wake("w1");
  const first = await claimOne();
  await work.release(database.db, [{ ...first, after: milliseconds(0), failures: 1, error: "no \0 answer" }]);
  expect(await row("w1")).toMatchObject({ failures: 1, last_error: "no \ufffd answer" });
  const second = await claimOne();
  expect(second.failures).toBe(1);
  await release(second);
  expect(await row("w1")).toMatchObject({ failures: 0, last_error: null });
});

test("many claimers share the work, and no two get the same thing", async () => {
  const ids = Array.from({ length: 600 }, (_, index) => `w${index}`);
  await wake(...ids);
  const got: string[] = [];
  const claimer = async (owner: string) => {
    for (;;) {
      const claimed = await claim({ owner, limit: 7 });
      got.push(...claimed.map(({ id }) => id));
      if (claimed.length === 0 && got.length >= ids.length) return;
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, index) => claimer(`owner-${index}`)));
  expect(got.sort()).toEqual([...ids].sort());
});

test("claims come in the order in which things fell due, of the asked kinds only", async () => {
  await database.db.query(`insert into work (kind, id, wake_at) values
    ('widget', 'late', now() - interval '1 s'), ('widget', 'early', now() - interval '1 min'),
    ('widget', 'future', now() + interval '1 min'), ('gadget', 'other', now() - interval '1 h')`);
  expect((await claim({ limit: 1 })).map(({ id }) => id)).toEqual(["early"]);
  expect((await claim()).map(({ id }) => id)).toEqual(["late"]);
});

test("rows locked by somebody are passed over by claims and renewals, not waited for", async () => {
  await wake("w1", "w2");
  const held = await claim({ leaseFor: seconds(30) });
  await database.db.transaction(async (tx) => {
    await tx.query("select 1 from work where id = 'w1' for update");
    const kept = await work.renew(database.db, {
      owner: "a",
      held: held.map((one) => ({ ...one, leaseFor: seconds(30) })),
    });
    expect(kept).toEqual([key("w2")]);
  });
});

test("wake-ups and releases of the same things, at once and in any order, never end in a deadlock", async () => {
  const ids = Array.from({ length: 40 }, (_, index) => `w${String(index).padStart(2, "0")}`);
  const shuffled = () => ids.toSorted(() => Math.random() - 0.5);
  await wake(...ids);
  const before = await deadlocks();
  const releaser = async () => {
    for (let round = 0; round < 40; round += 1) {
      const claimed = await claim();
      const order = new Map(shuffled().map((id, index) => [id, index]));
      const mixed = claimed.toSorted((a, b) => (order.get(a.id) ?? 0) - (order.get(b.id) ?? 0));
      await work.release(
        database.db,
        mixed.map((one) => ({ ...one, after: milliseconds(0), failures: 0, error: null })),
      );
    }
  };
  const waker = async () => {
    for (let round = 0; round < 40; round += 1) await work.wake(database.db, shuffled().map(key));
  };
  await Promise.all([releaser(), releaser(), waker(), waker(), waker()]);
  expect(await deadlocks()).toBe(before);
});

async function deadlocks(): Promise<number> {
  const [stats] = await database.db.query<{ deadlocks: number }>(
    "select deadlocks from pg_stat_database where datname = current_database()",
  );
  return stats?.deadlocks ?? -1;
}

test("what has ended for good leaves nothing behind, also when somebody woke it meanwhile", async () => {
  await wake("w1", "w2", "w3");
  const [one, two, three] = await claim();
  await wake("w2");
  const end = (claimed: ClaimedWork | undefined) => ({
    ...(claimed as ClaimedWork),
    after: null,
    failures: 0,
    error: null,
  });
  await work.release(database.db, [{ ...end(one), over: true }, { ...end(two), over: true }, end(three)]);
  expect([await row("w1"), await row("w2")]).toEqual([undefined, undefined]);
  expect(await row("w3")).toMatchObject({ lease_owner: null, due: false });
});

test("who has lost the lease does not end the passes of the one who has it", async () => {
  await wake("w1");
  const late = await claimOne({ leaseFor: milliseconds(1) });
  await untilOver("w1");
  const now = await claimOne({ owner: "b" });
  await work.release(database.db, [{ ...late, after: null, failures: 0, error: null, over: true }]);
  expect(await row("w1")).toMatchObject({ epoch: now.epoch, lease_owner: "b" });
});

test("the work on a gone thing is forgotten", async () => {
  await wake("w1");
  await work.forgetClaimed(database.db, await claimOne());
  expect(await row("w1")).toBeUndefined();
});

test("the work on a gone thing is not forgotten when somebody woke it meanwhile", async () => {
  await wake("w1");
  const first = await claimOne();
  await wake("w1");
  await work.forgetClaimed(database.db, first);
  await claimOne();
});

test("forgetting waits for a wake-up that is not committed yet, and then leaves it", async () => {
  await wake("w1");
  const first = await claimOne();
  let forgetting: Promise<void> = Promise.resolve();
  await database.db.transaction(async (tx) => {
    await work.wake(tx, [key("w1")]);
    forgetting = work.forgetClaimed(database.db, first);
    await vi.waitFor(async () => expect(await waitingForLocks()).toBeGreaterThan(0), { timeout: 20_000, interval: 5 });
  });
  await forgetting;
  await claimOne();
});

async function waitingForLocks(): Promise<number> {
  const [count] = await database.db.query<{ count: number }>(
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  );
  return count?.count ?? 0;
}

test("the sweep wakes what should be checked and has no wake-up, and nothing else", async () => {
  await database.db.query(`insert into widgets (id, state) values
    ('no-row', 'idle'), ('stranded', 'busy'), ('resting', 'idle'), ('planned', 'busy'), ('leased', 'busy'), ('broken', 'broken'),
    ('over', 'removed')`);
  await database.db.query(`insert into work (kind, id, wake_at, lease_until, lease_owner) values
    ('widget', 'stranded', 'infinity', null, null),
    ('widget', 'resting', 'infinity', null, null),
    ('widget', 'broken', 'infinity', null, null),
    ('widget', 'planned', now() + interval '1 min', null, null),
    ('widget', 'leased', now() + interval '1 min', now() + interval '1 min', 'b')`);
  const sweep = () =>
    work.wakeStranded(database.db, {
      kind: "widget",
      table: "widgets",
      liveStates: ["idle", "busy", "broken"],
      restingStates: ["idle", "broken"],
    });
  expect(await sweep()).toBe(2);
  expect((await claim()).map(({ id }) => id).sort()).toEqual(["no-row", "stranded"]);
  expect(await sweep()).toBe(0);
});

test("statements that the engine sends anyway bring the database's time along, and rows are as they would be without", async () => {
  const shown: number[] = [];
  const onTime = (time: number) => void shown.push(time);
  const databaseNow = async () => {
    const [row] = await database.db.query<{ now: Date }>("select clock_timestamp() as now");
    return row?.now.getTime() ?? 0;
  };
  const before = await databaseNow();
  expect(await work.untilNextDue(database.db, ["widget"], onTime)).toBeNull();
  await wake("w1", "w2");
  const options = { owner: "a", kinds: ["widget"], limit: 100, leaseFor: seconds(30), onTime };
  const held = await work.claim(database.db, options);
  expect(held.map((one) => Object.keys(one).sort())).toEqual([
    ["epoch", "failures", "id", "kind"],
    ["epoch", "failures", "id", "kind"],
  ]);
  const kept = await work.renew(database.db, {
    owner: "a",
    held: held.map((one) => ({ ...one, leaseFor: seconds(30) })),
    onTime,
  });
  expect(kept.toSorted((a, b) => a.id.localeCompare(b.id))).toEqual([key("w1"), key("w2")]);
  expect(await work.claim(database.db, options)).toEqual([]); // and so tells nothing
  const after = await databaseNow();
  expect(shown).toHaveLength(3);
  for (const time of shown) {
    expect(time).toBeGreaterThanOrEqual(before);
    expect(time).toBeLessThanOrEqual(after + 1); // a Date has no fractions
  }
});
