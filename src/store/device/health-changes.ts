import type { JsonObject } from "../../kernel/lifecycle.ts";
import {
  type ApplyMode,
  isSameBesidesTimes,
  type NewHealthReport,
  reportToStore,
} from "../../lifecycles/device/health-report.ts";
import { type Change, recordChanges } from "../lifecycle/changes.ts";
import { lockThings } from "../lifecycle/locks.ts";
import { nameOf, storeOf, type ThingKey, type ThingStores } from "../lifecycle/things.ts";
import type { Database, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import {
  deleteHealthReports,
  listExpiredReports,
  listHealthReports,
  type PlacedReport,
  putHealthReports,
} from "./health-reports.ts";

/** Alerts that an event names: every watcher gets it, and all of them are in the report. */
const MOST_NAMED = 20;

/** A report that is put on a device, or one source's report that ends. */
export type HealthChange = { readonly key: ThingKey } & (
  | { readonly put: NewHealthReport; readonly mode: ApplyMode; readonly expiresAt?: Date | null }
  | { readonly end: string; readonly expired?: boolean }
);

export interface HealthChangedBy {
  readonly actor: string;
  readonly address?: string | null;
  readonly now: Date;
}

export interface HealthChanged {
  /** Devices that there are not; nothing was written for them. */
  readonly unknown: readonly ThingKey[];
  /** How many reports ended. */
  readonly ended: number;
}

/**
 * Puts reports on devices and ends others, each with its event, and lets what depends on them follow in the same transaction: an
 * open alert makes a machine degraded. Services and effects both write reports by this function alone.
 *
 * A report that says what its source said before only gets its new times: monitors report every few seconds, and events are for news.
 *
 * The caller holds the locks of all devices. Several changes of one device are written in their order.
 */
export async function changeHealth(
  tx: Transaction,
  stores: ThingStores,
  changes: readonly HealthChange[],
  by: HealthChangedBy,
): Promise<HealthChanged> {
  const unknown: ThingKey[] = [];
  let ended = 0;
  for (const [kind, ofKind] of Map.groupBy(changes, ({ key }) => key.kind)) {
    const store = storeOf(stores, kind);
    for (const round of roundsOf(ofKind)) {
      const puts = await putsOf(tx, kind, round, by.now);
      const repeated = new Set(puts.filter(({ isNews }) => !isNews).map(({ key }) => key.id));
      const news = round.filter(({ key }) => !repeated.has(key.id));
      const there = await recordChanges(
        tx,
        store,
        news.map((change) => toldOf(change, by)),
      );
      const isKnown = ({ key }: { readonly key: ThingKey }) => repeated.has(key.id) || there.has(key.id);
      unknown.push(...news.map(({ key }) => key).filter(({ id }) => !there.has(id)));
      await putHealthReports(tx, puts.filter(isKnown));
      ended += await deleteHealthReports(tx, round.filter(isKnown).flatMap(endOf));
    }
    await store.healthChanged?.(tx, [...new Set(ofKind.map(({ key }) => key.id))], by);
  }
  return { unknown, ended };
}

/** The first change of each device, then the second of those that have two, and so on: one statement writes a device once. */
function roundsOf(changes: readonly HealthChange[]): HealthChange[][] {
  const perDevice = [...Map.groupBy(changes, ({ key }) => key.id).values()];
  const most = Math.max(...perDevice.map(({ length }) => length));
  return Array.from({ length: most }, (_, at) => perDevice.flatMap((ofDevice) => ofDevice[at] ?? []));
}

/** What the round puts, as it is stored; one of a device at most. */
async function putsOf(
  tx: Transaction,
  kind: string,
  round: readonly HealthChange[],
  now: Date,
): Promise<(PlacedReport & { readonly isNews: boolean })[]> {
  const puts = round.flatMap((change) => ("put" in change ? [change] : []));
  const earlier = await listHealthReports(
    tx,
    kind,
    puts.map(({ key }) => key.id),
  );
  return puts.map(({ key, put, mode, expiresAt = null }) => {
    const before = earlier.get(key.id)?.find(({ report }) => report.source === put.source);
    const entry = { mode, expiresAt, report: reportToStore(put, before?.report.alerts ?? [], now) };
    return { key, entry, isNews: before === undefined || !isSameBesidesTimes(before, entry) };
  });
}

const endOf = (change: HealthChange) =>
  "end" in change ? [{ key: change.key, source: change.end, expired: change.expired ?? false }] : [];

function toldOf(change: HealthChange, { actor, address = null }: HealthChangedBy): Change {
  const told = { id: change.key.id, type: "health_report_changed", actor, address, set: {}, touchesBasis: false };
  return { ...told, data: dataOf(change) };
}

function dataOf(change: HealthChange): JsonObject {
  if ("end" in change) return { source: change.end, ...(change.expired ? { expired: true } : { removed: true }) };
  const { source, alerts } = change.put;
  const more = alerts.length - MOST_NAMED;
  const named = alerts.slice(0, MOST_NAMED).map(({ id }) => id);
  return { source, mode: change.mode, alerts: named, ...(more > 0 && { more_alerts: more }) };
}

const AT_ONCE = 100;
const EXPIRY = "health report expiry";

/**
 * Ends the reports that have expired, each with its event: nobody else writes when they do. Since they expired they have not counted, so
 * that it does not matter when this comes, or whether several replicas do it. Returns how many there were.
 */
export async function endExpiredReports(db: Database, stores: ThingStores): Promise<number> {
  let total = 0;
  for (let ended = AT_ONCE; ended === AT_ONCE; total += ended)
    ended = await db.transaction((tx) => endSomeExpired(tx, stores));
  if (total > 0) failPoint("health-reports:forgotten");
  return total;
}

async function endSomeExpired(tx: Transaction, stores: ThingStores): Promise<number> {
  const list = () => listExpiredReports(tx, [...stores.keys()], AT_ONCE);
  const found = await list();
  await lockThings(
    tx,
    found.map(({ key }) => key),
  );
  const locked = new Set(found.map(({ key }) => nameOf(key)));
  // A source may have reported again before the locks were ours.
  const expired = (await list()).filter(({ key }) => locked.has(nameOf(key)));
  const [first] = expired;
  if (!first) return 0;
  const changes = expired.map(({ key, source }) => ({ key, end: source, expired: true }));
  await changeHealth(tx, stores, changes, { actor: EXPIRY, now: first.now });
  await deleteHealthReports(tx, expired); // of devices that are gone
  return expired.length;
}
