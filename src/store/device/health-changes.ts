import type { JsonObject } from "../../kernel/lifecycle.ts";
import { type ApplyMode, type NewHealthReport, withTimes } from "../../lifecycles/device/health-report.ts";
import { type Change, recordChanges } from "../lifecycle/changes.ts";
import { storeOf, type ThingKey, type ThingStores } from "../lifecycle/things.ts";
import type { Transaction } from "../postgres/database.ts";
import { deleteHealthReports, listHealthReports, putHealthReports } from "./health-reports.ts";

/** A report that is put on a device, or one source's report that ends. */
export type HealthChange = { readonly key: ThingKey } & (
  | { readonly put: NewHealthReport; readonly mode: ApplyMode; readonly expiresAt?: Date | null }
  | { readonly end: string }
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
      const there = await recordChanges(
        tx,
        store,
        round.map((change) => toldOf(change, by)),
      );
      unknown.push(...round.map(({ key }) => key).filter(({ id }) => !there.has(id)));
      const known = round.filter(({ key }) => there.has(key.id));
      await put(tx, kind, known, by.now);
      ended += await deleteHealthReports(tx, known.flatMap(endOf));
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

async function put(tx: Transaction, kind: string, changes: readonly HealthChange[], now: Date): Promise<void> {
  const puts = changes.flatMap((change) => ("put" in change ? [change] : []));
  const earlier = await listHealthReports(
    tx,
    kind,
    puts.map(({ key }) => key.id),
  );
  await putHealthReports(
    tx,
    puts.map(({ key, put, mode, expiresAt = null }) => {
      const before = earlier.get(key.id)?.find(({ report }) => report.source === put.source);
      return { key, entry: { mode, expiresAt, report: withTimes(put, before?.report.alerts ?? [], now) } };
    }),
  );
}

const endOf = (change: HealthChange) => ("end" in change ? [{ key: change.key, source: change.end }] : []);

function toldOf(change: HealthChange, { actor, address = null }: HealthChangedBy): Change {
  const told = { id: change.key.id, type: "health_report_changed", actor, address, set: {}, touchesBasis: false };
  return { ...told, data: dataOf(change) };
}

const dataOf = (change: HealthChange): JsonObject =>
  "end" in change
    ? { source: change.end, removed: true }
    : { source: change.put.source, mode: change.mode, alerts: change.put.alerts.map(({ id }) => id) };
