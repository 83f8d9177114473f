import { POWER_STATES } from "../../capabilities/power-control.ts";
import { isStuck } from "../../kernel/decide.ts";
import { AppError } from "../../kernel/errors.ts";
import { type Filter, termsOf } from "../../kernel/filter/filter.ts";
import { parseMac } from "../../kernel/ids.ts";
import type { StateSpec } from "../../kernel/lifecycle.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import type { HealthReportEntry } from "../../lifecycles/device/health-report.ts";
import {
  deviceReport,
  type HealthWord,
  healthWord,
  type MergedHealth,
  mergeHealth,
} from "../../lifecycles/device/merged-health.ts";
import { powerShelfLifecycle } from "../../lifecycles/power-shelf/lifecycle.ts";
import { listHealthReports } from "../../store/device/health-reports.ts";
import { type Claim, list as listClaims } from "../../store/lifecycle/claims/claims.ts";
import {
  failingSinceOf,
  isFailingShelf,
  isStuckShelf,
  type PowerShelfField,
  powerShelfListing,
} from "../../store/power-shelf/power-shelf-list.ts";
import type { PowerShelfRecord } from "../../store/power-shelf/power-shelves.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { is, type ListPage, type ListRequest, pageList } from "../call/listing.ts";
import { getPowerShelf } from "./power-shelves.ts";

export type { PowerShelfState } from "../../lifecycles/power-shelf/lifecycle.ts";
export type { Claim } from "../../store/lifecycle/claims/claims.ts";
export type { PowerShelfRecord } from "../../store/power-shelf/power-shelves.ts";

/** How the controller's last pass of a thing ended. */
export type LastPass = "waiting" | "failed" | "moved" | "resting";

/** The same for people, in a word; null when there is nothing to say. */
export type Condition = "waiting" | "failing" | "needs_intervention";

/** A shelf and all there is to say about where it stands. */
export interface PowerShelfView {
  readonly shelf: PowerShelfRecord;
  readonly lastPass: LastPass;
  readonly condition: Condition | null;
  /** Null while passes do not fail, and where it is not known. */
  readonly failingSince: Date | null;
  /** What it waits for, or why the last pass failed; empty when there is nothing to say. */
  readonly reason: string;
  /** Null where shelves rest. */
  readonly sla: Duration | null;
  readonly aboveSla: boolean;
  /** The shelf needs attention: in error, waiting for a person, above its SLA, or failing for longer than is tolerated. */
  readonly stuck: boolean;
  readonly claim: Claim | null;
  readonly waitingClaims: readonly Claim[];
  readonly health: MergedHealth;
  readonly healthWord: HealthWord;
  /** All reports, the BMC's own first; those that another one replaces too. */
  readonly reports: readonly HealthReportEntry[];
}

const KIND = powerShelfLifecycle.kind;
const STATES: Readonly<Record<string, StateSpec>> = powerShelfLifecycle.states;

/** Puts claims and health reports beside the shelves: two queries, however many there are. */
export async function viewPowerShelves(
  deps: ServiceDeps,
  shelves: readonly PowerShelfRecord[],
): Promise<PowerShelfView[]> {
  const ids = shelves.map(({ id }) => id);
  const [claims, reports] = await Promise.all([
    listClaims(
      deps.db,
      ids.map((id) => ({ kind: KIND, id })),
    ),
    listHealthReports(deps.db, KIND, ids),
  ]);
  const claimsOf = Map.groupBy(claims, ({ thing }) => thing.id);
  const now = nowOf(deps);
  return shelves.map((shelf) => {
    const ofShelf = claimsOf.get(shelf.id) ?? [];
    const entries = [...deviceReport(shelf.facts, shelf.stateSince), ...(reports.get(shelf.id) ?? [])];
    const health = mergeHealth(entries);
    return {
      shelf,
      ...standingOf(shelf, now),
      claim: ofShelf.find(({ grantedAt }) => grantedAt !== null) ?? null,
      waitingClaims: ofShelf.filter(({ grantedAt }) => grantedAt === null),
      health,
      healthWord: healthWord(health, shelf.facts.health),
      reports: entries,
    };
  });
}

export async function viewPowerShelf(deps: ServiceDeps, id: string): Promise<PowerShelfView> {
  const [view] = await viewPowerShelves(deps, [await getPowerShelf(deps, id)]);
  if (!view) throw new Error("a shelf has no view");
  return view;
}

export interface PowerShelfQuery extends ListRequest {
  readonly rackId: string | undefined;
  readonly state: string | undefined;
  readonly powerState: string | undefined;
  readonly stuckOnly: boolean;
  readonly failingOnly: boolean;
  /** Undefined: excluded, unless the filter says something about it. */
  readonly deleted: "exclude" | "only" | "include" | undefined;
  readonly bmcMac: string | undefined;
}

/** In the order of their ids unless told. */
export async function pagePowerShelves(deps: ServiceDeps, request: PowerShelfQuery): Promise<ListPage<PowerShelfView>> {
  const { rackId, state, powerState, stuckOnly, failingOnly, deleted, bmcMac } = request;
  checkWord(state, Object.keys(STATES), "state");
  checkWord(powerState, POWER_STATES, "power_state");
  const clauses: Filter<PowerShelfField> = [
    ...is("rack_id", rackId),
    ...is("state", state),
    ...is("power_state", powerState),
    ...is("bmc_mac", bmcMac && parseMac(bmcMac, "bmc_mac")),
    ...is("stuck", stuckOnly ? "true" : undefined),
    ...is("failing", failingOnly ? "true" : undefined),
  ];
  const query = { rackId, state, powerState, stuckOnly, failingOnly, deleted, bmcMac };
  const page = await pageList(deps, powerShelfListing, request, {
    clauses,
    query,
    completed: (filter) => [...deletedClauses(deleted, filter), ...filter],
    show: (shelf) => shelf,
  });
  return { ...page, items: await viewPowerShelves(deps, page.items) };
}

function deletedClauses(deleted: PowerShelfQuery["deleted"], filter: Filter<PowerShelfField>): Filter<PowerShelfField> {
  const isSaid = termsOf(filter).some(({ field }) => field === "deleted" || field === "deleted_at");
  const which = deleted ?? (isSaid ? "include" : "exclude");
  return which === "include" ? [] : is("deleted", String(which === "only"));
}

function standingOf(
  shelf: PowerShelfRecord,
  now: Date,
): Omit<PowerShelfView, "shelf" | "claim" | "waitingClaims" | "health" | "healthWord" | "reports"> {
  const lastPass = lastPassOf(shelf);
  const { outcome } = shelf;
  return {
    lastPass,
    condition: outcome?.type ?? (lastPass === "failed" ? "failing" : null),
    failingSince: failingSinceOf(shelf),
    reason: outcome?.reason ?? shelf.lastError ?? "",
    sla: STATES[shelf.state.name]?.sla ?? null,
    aboveSla: isStuck(powerShelfLifecycle, shelf, now),
    stuck: isStuckShelf(shelf, now),
  };
}

function lastPassOf(shelf: PowerShelfRecord): LastPass {
  if (shelf.outcome?.type === "waiting") return "waiting";
  if (isFailingShelf(shelf)) return "failed";
  return STATES[shelf.state.name]?.rest ? "resting" : "moved";
}

function checkWord(word: string | undefined, words: readonly string[], field: string): void {
  if (word === undefined || words.includes(word)) return;
  const shown = JSON.stringify(word.slice(0, 80));
  throw new AppError("invalid_argument", `${field}: ${shown} is none of ${words.join(", ")}`, { field });
}
