import type { Reach } from "../../kernel/access/scope.ts";
import { AppError } from "../../kernel/errors.ts";
import { typeNameOf } from "../../kernel/filter/fields.ts";
import { parseFilter } from "../../kernel/filter/parse-filter.ts";
import { aboveSlaSql, dwellingSql, troubledSql } from "../../store/lifecycle/attention.ts";
import { withinOf } from "../../store/lifecycle/places.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import { filterFieldsOf } from "../../store/postgres/list-fields.ts";
import type { Tally, TallyDwell } from "../../store/postgres/tally.ts";
import { nowOf } from "../call/deps.ts";
import { groupsFrom } from "./group-by.ts";
import { asListed, listingOf, type OverviewDeps } from "./listings.ts";

export interface CountRequest {
  readonly kind: string;
  readonly filter: string;
  readonly groupBy: readonly string[];
  readonly maxGroups: number;
  /** Only things within it are counted. Undefined: all. */
  readonly reach: Reach | undefined;
}

export interface ThingGroup extends Tally {
  /** Null: nothing of the group is at work or in trouble. */
  readonly dwell: TallyDwell | null;
}

export interface ThingCounts {
  /** The largest first. */
  readonly groups: readonly ThingGroup[];
  readonly total: number;
  readonly isCut: boolean;
  readonly at: Date;
}

const MOST_GROUPS = 1_000;
const USUAL_GROUPS = 100;

/** How many things of a kind satisfy a filter, by the values of fields of their list. */
export async function countThings(deps: OverviewDeps, request: CountRequest): Promise<ThingCounts> {
  const { lists = deps.db } = deps;
  const listing = listingOf(deps, request.kind);
  const fields = filterFieldsOf(listing.fields);
  const by = groupsFrom(request.groupBy, fields);
  const limit = limitFrom(request.maxGroups);
  const at = nowOf(deps);
  const filter = asListed(
    listing,
    parseFilter(request.filter, fields, () => at),
  );
  const store = storeOf(deps.stores, request.kind);
  const within = withinOf(store, request.reach);
  const rows = await listing.tally(lists, { filter, by, within }, limit + 1);
  const shown = rows.slice(0, limit);
  const isCut = rows.length > limit;
  // A thing with several tags is in several groups.
  const isCounted = !isCut && by.every(({ field }) => typeNameOf(fields[field] ?? "text") !== "tags");
  const total = isCounted
    ? shown.reduce((sum, { things }) => sum + things, 0)
    : (await listing.tally(lists, { filter, by: [], within }, 1))[0]?.things;
  const dwelling = await listing.dwell(
    lists,
    { filter, by, within },
    {
      applies: dwellingSql(store),
      late: aboveSlaSql(store),
      troubled: troubledSql(store),
      groups: shown.map(({ values }) => values),
    },
  );
  const dwells = new Map(dwelling.map((dwell) => [JSON.stringify(dwell.values), dwell]));
  return {
    groups: shown.map((group) => ({ ...group, dwell: dwells.get(JSON.stringify(group.values)) ?? null })),
    total: total ?? 0,
    isCut,
    at,
  };
}

function limitFrom(maxGroups: number): number {
  if (maxGroups === 0) return USUAL_GROUPS;
  if (maxGroups > 0 && maxGroups <= MOST_GROUPS) return maxGroups;
  throw new AppError("invalid_argument", `max_groups: at most ${MOST_GROUPS}, and not below 0, got ${maxGroups}`, {
    field: "max_groups",
  });
}
