import type { AlertEffect } from "../../../kernel/effects.ts";
import { type HealthReportEntry, type NewAlert, probeOf } from "../../../lifecycles/device/health-report.ts";
import { changeHealth, type HealthChange } from "../../device/health-changes.ts";
import { listHealthReports } from "../../device/health-reports.ts";
import type { Transaction } from "../../postgres/database.ts";
import { keyOf } from "../commit/unit.ts";
import { nameOf, type ThingStores } from "../things.ts";
import type { EffectPlan } from "./plan-effects.ts";

/**
 * Opens and ends alerts; the caller holds the locks. They are part of the report that their source has on the thing, where people and
 * programs report theirs, so that all that depends on reports knows them.
 */
export async function changeAlerts(tx: Transaction, stores: ThingStores, plans: readonly EffectPlan[]): Promise<void> {
  const alerting = plans.filter(({ alerts }) => alerts.length > 0);
  if (alerting.length === 0) return;
  const now = await readTime(tx);
  const known = await listReports(
    tx,
    alerting.flatMap(({ alerts }) => alerts),
  );
  for (const { unit, alerts } of alerting) {
    const changes = [...Map.groupBy(alerts, reportOf).values()].flatMap((ofReport) => changeOf(ofReport, known));
    const by = keyOf(unit);
    const { unknown } = await changeHealth(tx, stores, changes, { actor: `${by.kind} ${by.id}`, now });
    const [missing] = unknown;
    if (missing) throw new Error(`${missing.kind} ${missing.id} does not exist, so it can have no alert`);
  }
}

async function readTime(tx: Transaction): Promise<Date> {
  const [row] = await tx.query<{ now: Date }>("select now() as now");
  return row?.now ?? new Date();
}

/** One report of one source on one thing. */
const reportOf = (effect: AlertEffect): string => `${nameOf(effect)} ${effect.source}`;

async function listReports(
  tx: Transaction,
  alerts: readonly AlertEffect[],
): Promise<ReadonlyMap<string, HealthReportEntry>> {
  const reports = new Map<string, HealthReportEntry>();
  for (const [kind, ofKind] of Map.groupBy(alerts, (effect) => effect.kind)) {
    const found = await listHealthReports(tx, kind, [...new Set(ofKind.map(({ id }) => id))]);
    for (const [id, entries] of found)
      for (const entry of entries) reports.set(`${nameOf({ kind, id })} ${entry.report.source}`, entry);
  }
  return reports;
}

/** None when the report says all of it already. */
function changeOf(effects: readonly AlertEffect[], known: ReadonlyMap<string, HealthReportEntry>): HealthChange[] {
  const [first] = effects as [AlertEffect, ...AlertEffect[]];
  const { kind, id, source } = first;
  const before = known.get(reportOf(first));
  const open = new Map<string, NewAlert>((before?.report.alerts ?? []).map((one) => [probeOf(one), one]));
  let isNews = false;
  for (const effect of effects) {
    const probe = probeOf(effect.alert);
    const known = open.get(probe);
    if (effect.open === null) isNews = open.delete(probe) || isNews;
    else if (!says(known, effect.open)) {
      const { message, classifications } = effect.open;
      open.set(probe, { ...effect.alert, inAlertSince: null, message, tenantMessage: null, classifications });
      isNews = true;
    }
  }
  if (!isNews) return [];
  const key = { kind, id };
  const { successes = [], triggeredBy = null } = before?.report ?? {};
  if (open.size === 0 && successes.length === 0) return [{ key, end: source }];
  const put = { source, observedAt: null, triggeredBy, successes, alerts: [...open.values()] };
  return [{ key, put, mode: before?.mode ?? "merge" }];
}

const says = (known: NewAlert | undefined, { message, classifications }: NonNullable<AlertEffect["open"]>): boolean =>
  known?.message === message && known.classifications.join("\n") === classifications.join("\n");
