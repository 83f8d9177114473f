import { isStuck } from "../../kernel/decide.ts";
import { AppError } from "../../kernel/errors.ts";
import { type Filter, termsOf } from "../../kernel/filter/filter.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import type { HealthReportEntry } from "../../lifecycles/device/health-report.ts";
import {
  deviceReport,
  type HealthWord,
  healthWord,
  type MergedHealth,
  mergeHealth,
} from "../../lifecycles/device/merged-health.ts";
import { failingSinceOf, isFailing, isStuckDevice, type Table } from "../../store/device/bmc-device-fields.ts";
import type { BmcDeviceRecord } from "../../store/device/bmc-devices.ts";
import { listHealthReports } from "../../store/device/health-reports.ts";
import { type Claim, list as listClaims } from "../../store/lifecycle/claims/claims.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { is } from "../call/listing.ts";

export type { BmcDeviceRecord as DeviceRecord } from "../../store/device/bmc-devices.ts";
export type { Claim } from "../../store/lifecycle/claims/claims.ts";

/** How the controller's last pass of a thing ended. */
export type LastPass = "waiting" | "failed" | "moved" | "resting";

/** The same for people, in a word; null when there is nothing to say. */
export type Condition = "waiting" | "failing" | "needs_intervention";

/** Where a device stands: what its passes lead to, who holds it, and how it is. */
export interface DeviceStanding {
  readonly lastPass: LastPass;
  readonly condition: Condition | null;
  /** Null while passes do not fail, and where it is not known. */
  readonly failingSince: Date | null;
  /** What it waits for, or why the last pass failed; empty when there is nothing to say. */
  readonly reason: string;
  /** Null where devices rest. */
  readonly sla: Duration | null;
  readonly aboveSla: boolean;
  /** The device needs attention: in error, waiting for a person, above its SLA, or failing for longer than is tolerated. */
  readonly stuck: boolean;
  readonly claim: Claim | null;
  readonly waitingClaims: readonly Claim[];
  readonly health: MergedHealth;
  readonly healthWord: HealthWord;
  /** All reports, the BMC's own first; those that another one replaces too. */
  readonly reports: readonly HealthReportEntry[];
}

/** Finds out where devices stand: two queries, however many there are. */
export async function findStandings(
  deps: ServiceDeps,
  lifecycle: Table,
  devices: readonly BmcDeviceRecord[],
): Promise<DeviceStanding[]> {
  const { kind } = lifecycle;
  const ids = devices.map(({ id }) => id);
  const [claims, reports] = await Promise.all([
    listClaims(
      deps.db,
      ids.map((id) => ({ kind, id })),
    ),
    listHealthReports(deps.db, kind, ids),
  ]);
  const claimsOf = Map.groupBy(claims, ({ thing }) => thing.id);
  const now = nowOf(deps);
  return devices.map((device) => {
    const ofDevice = claimsOf.get(device.id) ?? [];
    const entries = [...deviceReport(device.facts, device.stateSince), ...(reports.get(device.id) ?? [])];
    const health = mergeHealth(entries);
    return {
      ...passesOf(lifecycle, device, now),
      claim: ofDevice.find(({ grantedAt }) => grantedAt !== null) ?? null,
      waitingClaims: ofDevice.filter(({ grantedAt }) => grantedAt === null),
      health,
      healthWord: healthWord(health, device.facts.health),
      reports: entries,
    };
  });
}

type Passing = Pick<BmcDeviceRecord, "outcome" | "lastError" | "state" | "stateSince">;

/** What passes of a thing lead to. */
export function passesOf(
  lifecycle: Table,
  device: Passing,
  now: Date,
): Omit<DeviceStanding, "claim" | "waitingClaims" | "health" | "healthWord" | "reports"> {
  const lastPass = lastPassOf(lifecycle, device);
  const { outcome } = device;
  return {
    lastPass,
    condition: outcome?.type ?? (lastPass === "failed" ? "failing" : null),
    failingSince: failingSinceOf(device),
    reason: outcome?.reason ?? device.lastError ?? "",
    sla: lifecycle.states[device.state.name]?.sla ?? null,
    aboveSla: isStuck(lifecycle, device, now),
    stuck: isStuckDevice(lifecycle, device, now),
  };
}

function lastPassOf({ states }: Table, device: Passing): LastPass {
  if (device.outcome?.type === "waiting") return "waiting";
  if (isFailing(device)) return "failed";
  return states[device.state.name]?.rest ? "resting" : "moved";
}

/** Undefined: those that are marked for deletion are excluded, unless the filter says something about it. */
export type DeletedChoice = "exclude" | "only" | "include" | undefined;

export function deletedClauses<F extends string>(deleted: DeletedChoice, filter: Filter<F>): Filter<F | "deleted"> {
  const isSaid = termsOf(filter).some(({ field }) => field === "deleted" || field === "deleted_at");
  const which = deleted ?? (isSaid ? "include" : "exclude");
  return which === "include" ? [] : is("deleted", String(which === "only"));
}

export function checkWord(word: string | undefined, words: readonly string[], field: string): void {
  if (word === undefined || words.includes(word)) return;
  const shown = JSON.stringify(word.slice(0, 80));
  throw new AppError("invalid_argument", `${field}: ${shown} is none of ${words.join(", ")}`, { field });
}
