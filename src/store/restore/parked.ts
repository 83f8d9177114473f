import { decide } from "../../kernel/decide.ts";
import type { Lifecycle, Thing } from "../../kernel/lifecycle.ts";
import { restoreReviewLifecycle } from "../../lifecycles/restore-review/lifecycle.ts";
import { recordChanges } from "../lifecycle/changes.ts";
import { lockThings } from "../lifecycle/locks.ts";
import type { ThingKey, ThingStore, ThingStores } from "../lifecycle/things.ts";
import type { Database, Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

const PAGE = 250;

/**
 * Parks everything: in the transaction that finds a restore, before anybody has worked on what the backup says. Leases end, also those of
 * replicas that had them before the restore, and no outcome that was worked out under one is written any more.
 */
export async function parkAll(tx: Transaction): Promise<void> {
  // Also against those who hold rows of it by now and will write it: who waits for the table must not hold what they wait for.
  await tx.execute("lock table work in exclusive mode");
  await tx.execute(
    `update work set parked = true, lease_until = null, lease_owner = null,
            wake_at = case when lease_owner is null then wake_at else least(wake_at, now()) end,
            epoch = greatest(epoch + 1, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
      where kind <> $1`,
    [restoreReviewLifecycle.kind],
  );
  failPoint("restore:parked-all");
}

interface Candidate {
  readonly id: string;
  readonly requested: boolean;
}

/**
 * Keeps parked what would touch a device, or leads to that, and releases the rest. Done page by page; doing it again is harmless, and what
 * is not sorted yet stays parked. Returns how many things are parked.
 */
export async function sortParked(
  db: Database,
  stores: ThingStores,
  reviewId: string,
  signal: AbortSignal,
): Promise<number> {
  for (const store of stores.values()) {
    if (store.lifecycle.kind === restoreReviewLifecycle.kind) continue;
    for (let page = await candidates(db, store, ""); page.length > 0; ) {
      signal.throwIfAborted();
      const ids = page;
      await db.transaction((tx) => parkPage(tx, store, reviewId, ids));
      page = await candidates(db, store, page.at(-1)?.id ?? "");
    }
  }
  await db.transaction(releaseUnlisted);
  return countParked(db);
}

const statesOf = ({ lifecycle }: ThingStore, wanted: (name: string) => boolean): string[] =>
  Object.keys(lifecycle.states).filter(wanted);

/** Whether a handler works in the state: what only others move would do nothing by itself. */
const isHandled = ({ states, transitions }: Lifecycle<Thing>, state: string): boolean =>
  states[state]?.rest !== true && transitions.some(([from, trigger]) => from === state && trigger.owner === "handler");

async function candidates(db: Queryable, store: ThingStore, after: string): Promise<readonly Candidate[]> {
  const { lifecycle, table, requests, actsAtRest = [] } = store;
  const requested = Object.values(requests).map(({ column }) => `t.${column} is not null`);
  const isRequested = requested.length === 0 ? "false" : `(${requested.join(" or ")})`;
  return db.query<Candidate>(
    `select t.id, ${isRequested} as requested from ${table} t
      where t.id > $1 and t.state = any($2)
        and (t.state = any($3) or ${isRequested}
             or exists (select from work w where w.kind = $4 and w.id = t.id and w.parked and w.wake_at < 'infinity'))
      order by t.id limit ${PAGE}`,
    [
      after,
      statesOf(store, (name) => lifecycle.states[name]?.terminal !== true),
      statesOf(store, (name) => isHandled(lifecycle, name) || actsAtRest.includes(name)),
      lifecycle.kind,
    ],
  );
}

async function parkPage(
  tx: Transaction,
  store: ThingStore,
  reviewId: string,
  page: readonly Candidate[],
): Promise<void> {
  const { kind } = store.lifecycle;
  await lockThings(
    tx,
    page.map(({ id }) => ({ kind, id })),
  );
  const requested = new Set(page.flatMap((one) => (one.requested ? [one.id] : [])));
  const { things, unreadable } = await store.load(
    tx,
    page.map(({ id }) => id),
  );
  const parked = [
    ...things.flatMap((thing) =>
      requested.has(thing.id) || wouldAct(store, thing) ? [{ id: thing.id, doing: doingOf(thing, requested) }] : [],
    ),
    // Nobody can say what it would do.
    ...unreadable.map(({ id, error }) => ({ id, doing: `cannot be read: ${error}`.slice(0, 300) })),
  ];
  if (parked.length === 0) return;
  const ids = parked.map(({ id }) => id);
  const fresh = await tx.query<{ id: string }>(
    `insert into parked_work as p (review_id, kind, id, doing)
     select $1, $2, r.id, r.doing from unnest($3::text[], $4::text[]) as r(id, doing)
     on conflict (review_id, kind, id) do update
       set verdict = null, settled_at = null, settled_by = null, parked_at = now(), doing = excluded.doing where p.verdict is not null
     returning id`,
    [reviewId, kind, ids, parked.map(({ doing }) => doing)],
  );
  await tx.execute(
    `insert into work (kind, id, wake_at, parked) select $1, i, 'infinity', true from unnest($2::text[]) as u(i) order by i
     on conflict (kind, id) do update set wake_at = 'infinity', parked = true`,
    [kind, ids],
  );
  failPoint("restore:parked");
  await recordChanges(
    tx,
    store,
    fresh.map(({ id }) => ({
      id,
      type: "parked",
      actor: "millwright",
      reason: `the database was restored: restore review ${reviewId}`,
      data: { review: reviewId },
      set: {},
    })),
  );
}

function wouldAct({ lifecycle, actsAtRest = [] }: ThingStore, thing: Thing): boolean {
  const { name } = thing.state;
  if (isHandled(lifecycle, name) || actsAtRest.includes(name)) return true;
  try {
    return decide(lifecycle, thing).kind === "move";
  } catch {
    return true; // a guard that fails here would fail in its pass: somebody has to see it
  }
}

function doingOf({ id, state, outcome, ...thing }: Thing, requested: ReadonlySet<string>): string {
  const { target } = thing as { readonly target?: ThingKey };
  const on = target === undefined ? "" : ` on ${target.kind} ${target.id}`;
  const asked = requested.has(id) ? ", with a request" : "";
  return `${state.name}${on}${asked}${outcome === null ? "" : `: ${outcome.reason}`}`.slice(0, 300);
}

/** All that nobody has to decide on. What was due goes on being due. */
async function releaseUnlisted(tx: Transaction): Promise<void> {
  await tx.execute(
    `with harmless as (
       select w.kind, w.id from work w
        where w.parked and not exists (select from parked_work p where p.kind = w.kind and p.id = w.id and p.verdict is null)
        order by w.kind, w.id for update of w)
     update work w set parked = false from harmless h where w.kind = h.kind and w.id = h.id`,
  );
  failPoint("restore:released");
}

export async function countParked(db: Queryable): Promise<number> {
  const [row] = await db.query<{ count: number }>("select count(*) as count from parked_work where verdict is null");
  return row?.count ?? 0;
}

export const VERDICTS = ["resumed", "adopted", "abandoned", "gone"] as const;
export type Verdict = (typeof VERDICTS)[number];

export interface Settled {
  readonly reviewId: string;
  readonly verdict: Verdict;
  readonly actor: string;
  readonly address: string | null;
  readonly reason: string;
}

/** Releases things: their next pass is due at once. The caller holds their locks. */
export async function releaseParked(
  tx: Transaction,
  store: ThingStore,
  ids: readonly string[],
  { reviewId, verdict, actor, address, reason }: Settled,
): Promise<void> {
  const { kind } = store.lifecycle;
  const settled = await tx.query<{ id: string }>(
    `update parked_work set verdict = $4, settled_at = now(), settled_by = $5
      where review_id = $1 and kind = $2 and id = any($3) and verdict is null returning id`,
    [reviewId, kind, ids, verdict, actor],
  );
  const released = settled.map(({ id }) => id);
  await tx.execute("update work set parked = false, wake_at = now() where kind = $1 and id = any($2) and parked", [
    kind,
    released,
  ]);
  failPoint("restore:settled");
  await recordChanges(
    tx,
    store,
    released.map((id) => ({ id, type: verdict, actor, address, reason, data: { review: reviewId }, set: {} })),
  );
  tx.notifyWhenCommitted("millwright");
}

/** Which of these things nobody may go on with: they wait for a decision, or for being sorted. */
export async function findParked(db: Queryable, keys: readonly ThingKey[]): Promise<readonly ThingKey[]> {
  if (keys.length === 0) return [];
  return db.query<{ kind: string; id: string }>(
    `select w.kind, w.id from work w join unnest($1::text[], $2::text[]) as k(kind, id) using (kind, id) where w.parked`,
    [keys.map(({ kind }) => kind), keys.map(({ id }) => id)],
  );
}

/** Of these things, those that people have decided on in the review. */
export const findSettled = (db: Queryable, reviewId: string, keys: readonly ThingKey[]): Promise<ThingKey[]> =>
  db.query<{ kind: string; id: string }>(
    `select p.kind, p.id from parked_work p join unnest($2::text[], $3::text[]) as k(kind, id) using (kind, id)
      where p.review_id = $1 and p.verdict is not null`,
    [reviewId, keys.map(({ kind }) => kind), keys.map(({ id }) => id)],
  );

/** What became of the thing in the review; null: it waits. Undefined: it was not parked. */
export async function findVerdict(
  db: Queryable,
  reviewId: string,
  { kind, id }: ThingKey,
): Promise<Verdict | null | undefined> {
  const [row] = await db.query<{ verdict: Verdict | null }>(
    "select verdict from parked_work where review_id = $1 and kind = $2 and id = $3",
    [reviewId, kind, id],
  );
  return row?.verdict;
}

/** Whether people have let the thing go on, in this review. */
export async function isResumed(db: Queryable, reviewId: string, { kind, id }: ThingKey): Promise<boolean> {
  const rows = await db.query(
    "select from parked_work where review_id = $1 and kind = $2 and id = $3 and verdict = 'resumed'",
    [reviewId, kind, id],
  );
  return rows.length > 0;
}

/** Which of these things wait for a decision in the review. */
export async function findWaiting(
  db: Queryable,
  reviewId: string,
  keys: readonly ThingKey[],
): Promise<readonly ThingKey[]> {
  return db.query<{ kind: string; id: string }>(
    `select p.kind, p.id from parked_work p join unnest($2::text[], $3::text[]) as k(kind, id) using (kind, id)
      where p.review_id = $1 and p.verdict is null order by p.kind, p.id`,
    [reviewId, keys.map(({ kind }) => kind), keys.map(({ id }) => id)],
  );
}

export interface ParkedCount {
  readonly kind: string;
  readonly things: number;
}

export const countParkedByKind = (db: Queryable): Promise<ParkedCount[]> =>
  db.query<ParkedCount>(
    "select kind, count(*) as things from parked_work where verdict is null group by kind order by kind",
  );
