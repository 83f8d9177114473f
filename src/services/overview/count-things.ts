import { AppError } from "../../kernel/errors.ts";
import { type FieldRef, type FilterFields, typeNameOf } from "../../kernel/filter/fields.ts";
import { parseField } from "../../kernel/filter/parse-field.ts";
import { parseFilter } from "../../kernel/filter/parse-filter.ts";
import { QueryReader } from "../../kernel/filter/reader.ts";
import { aboveSlaSql, dwellingSql, troubledSql } from "../../store/lifecycle/attention.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import { filterFieldsOf } from "../../store/postgres/list-fields.ts";
import type { Tally, TallyDwell } from "../../store/postgres/tally.ts";
import { nowOf } from "../call/deps.ts";
import { asListed, type KindListing, type OverviewDeps } from "./listings.ts";

export interface CountRequest {
  readonly kind: string;
  readonly filter: string;
  readonly groupBy: readonly string[];
  readonly maxGroups: number;
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

const MOST_FIELDS = 3;
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
  const rows = await listing.tally(lists, filter, by, limit + 1);
  const shown = rows.slice(0, limit);
  const isCut = rows.length > limit;
  // A thing with several tags is in several groups.
  const isCounted = !isCut && by.every(({ field }) => typeNameOf(fields[field] ?? "text") !== "tags");
  const total = isCounted
    ? shown.reduce((sum, { things }) => sum + things, 0)
    : (await listing.tally(lists, filter, [], 1))[0]?.things;
  const dwelling = await listing.dwell(lists, filter, by, {
    applies: dwellingSql(store),
    late: aboveSlaSql(store),
    troubled: troubledSql(store),
    groups: shown.map(({ values }) => values),
  });
  const dwells = new Map(dwelling.map((dwell) => [JSON.stringify(dwell.values), dwell]));
  return {
    groups: shown.map((group) => ({ ...group, dwell: dwells.get(JSON.stringify(group.values)) ?? null })),
    total: total ?? 0,
    isCut,
    at,
  };
}

function listingOf({ listings }: OverviewDeps, kind: string): KindListing {
  const listing = listings.get(kind);
  if (listing) return listing;
  const known = [...listings.keys()].sort().join(", ");
  throw new AppError("invalid_argument", `kind: ${JSON.stringify(kind.slice(0, 80))} is none of ${known}`, {
    field: "kind",
  });
}

function groupsFrom(words: readonly string[], fields: FilterFields): FieldRef[] {
  const refuse = (why: string) => new AppError("invalid_argument", `group_by: ${why}`, { field: "group_by" });
  if (words.length > MOST_FIELDS) throw refuse(`at most ${MOST_FIELDS} fields, got ${words.length}`);
  return words.map((word, at) => {
    const reader = new QueryReader(word, "group_by", 1_000);
    const { field, key, type } = parseField(reader, fields);
    if (!reader.atEnd()) throw reader.expected("the end");
    if (type === "time") throw refuse(`${field} is a time, and its values are no groups`);
    if (words.indexOf(word) !== at) throw refuse(`${word.slice(0, 80)} is there twice`);
    return key === undefined ? { field } : { field, key };
  });
}

function limitFrom(maxGroups: number): number {
  if (maxGroups === 0) return USUAL_GROUPS;
  if (maxGroups > 0 && maxGroups <= MOST_GROUPS) return maxGroups;
  throw new AppError("invalid_argument", `max_groups: at most ${MOST_GROUPS}, and not below 0, got ${maxGroups}`, {
    field: "max_groups",
  });
}
