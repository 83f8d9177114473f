import type { Reach } from "../../kernel/access/scope.ts";
import type { Filter } from "../../kernel/filter/filter.ts";
import { printFilter } from "../../kernel/filter/print-filter.ts";
import {
  type AttentionReason,
  type AttentionRow,
  countLiveStates,
  listAttention,
  MOST_ATTENDED,
  type StateTotal,
} from "../../store/lifecycle/attention.ts";
import { withinOf } from "../../store/lifecycle/places.ts";
import { storeOf, type ThingStore } from "../../store/lifecycle/things.ts";
import { nowOf } from "../call/deps.ts";
import { checkKind } from "../call/known-kinds.ts";
import { type OverviewDeps, rackSqlOf, sinceFieldOf, stateFieldOf } from "./listings.ts";

export interface AttentionGroup extends AttentionRow {
  readonly kind: string;
  /** Of the kind's list; empty where the kind has none. */
  readonly filter: string;
}

export interface KindCounts {
  readonly kind: string;
  readonly things: number;
  readonly working: number;
  readonly attention: number;
  readonly aboveSla: number;
  readonly states: readonly StateTotal[];
}

export interface Overview {
  readonly at: Date;
  /** The longest waiting first. */
  readonly attention: readonly AttentionGroup[];
  readonly isCut: boolean;
  readonly kinds: readonly KindCounts[];
}

const MOST_GROUPS = 200;

/** What needs somebody, and how many things of each kind are in which state: two statements a kind, one kind after the other. */
export async function getOverview(
  deps: OverviewDeps,
  { kinds: wanted, reach }: { readonly kinds: readonly string[]; readonly reach: Reach | undefined },
): Promise<Overview> {
  for (const kind of wanted) checkKind(deps, kind, "kinds");
  const kinds = [...deps.stores]
    .filter(([kind, { place }]) => (wanted.length === 0 || wanted.includes(kind)) && (!reach || place))
    .map(([kind]) => kind)
    .sort();
  const seen = [];
  for (const kind of kinds) seen.push(await seeKind(deps, kind, reach));
  const attention = seen.flatMap(({ groups }) => groups).toSorted((a, b) => a.since.getTime() - b.since.getTime());
  return {
    at: nowOf(deps),
    attention: attention.slice(0, MOST_GROUPS),
    isCut: attention.length > MOST_GROUPS || seen.some(({ counts }) => counts.attention >= MOST_ATTENDED),
    kinds: seen.map(({ counts }) => counts),
  };
}

async function seeKind(deps: OverviewDeps, kind: string, reach: Reach | undefined) {
  const { lists = deps.db } = deps;
  const store = storeOf(deps.stores, kind);
  const rack = rackSqlOf(deps.listings.get(kind));
  const within = withinOf(store, reach);
  const rows = await listAttention(lists, store, { limit: MOST_GROUPS + 1, rack, within });
  const states = await countLiveStates(lists, store, within);
  const sum = (some: readonly { readonly things: number }[]) => some.reduce((all, { things }) => all + things, 0);
  const counts: KindCounts = {
    kind,
    things: sum(states),
    working: sum(states.filter(({ state }) => isWorking(store, state))),
    attention: sum(rows),
    aboveSla: sum(rows.filter(({ reason }) => reason === "above_sla")),
    states,
  };
  return { counts, groups: rows.map((row) => ({ ...row, kind, filter: filterOf(deps, kind, row) })) };
}

function isWorking({ lifecycle }: ThingStore, state: string): boolean {
  const { rest, terminal } = lifecycle.states[state] ?? {};
  return !rest && !terminal;
}

/** A filter that finds what the row is of; it says no more than the list can. */
function filterOf(deps: OverviewDeps, kind: string, { reason, state, cause, rack }: AttentionRow): string {
  const listing = deps.listings.get(kind);
  const stateField = listing && stateFieldOf(listing);
  if (listing === undefined || stateField === undefined) return "";
  const store = storeOf(deps.stores, kind);
  const rackField = "rack_id" in listing.fields ? "rack_id" : "rack";
  const terms: Filter = [
    { field: stateField, operator: "=", value: state },
    ...(cause !== "" && "cause" in listing.fields ? [{ field: "cause", operator: "=", value: cause } as const] : []),
    ...(rack !== null && rack !== "" ? [{ field: rackField, operator: "=", value: rack } as const] : []),
    ...lateTerm(store, reason, state, sinceFieldOf(listing)),
  ];
  const asks = reason === "needs_person" ? store.attention?.filter : undefined;
  return [printFilter(terms), ...(asks ? [asks] : [])].join(" AND ");
}

function lateTerm(
  { lifecycle }: ThingStore,
  reason: AttentionReason,
  state: string,
  field: string | undefined,
): Filter {
  const sla = lifecycle.states[state]?.sla;
  if (reason !== "above_sla" || sla === undefined || field === undefined) return [];
  return [{ field, operator: "<", value: `-${Math.ceil(sla / 1_000)}s` }];
}
