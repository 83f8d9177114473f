import type { Reach } from "../../kernel/access/scope.ts";
import type { Queryable } from "../postgres/database.ts";
import type { Within } from "../postgres/listing.ts";
import type { ThingKey, ThingStores } from "./things.ts";

type Sql = (row: string) => string;

/**
 * Where a thing is, as SQL on its row. A reach that names racks holds nothing that has no rack here, and so on: what is not said keeps a
 * thing out.
 */
export interface Place {
  readonly table: string;
  readonly rack?: Sql;
  readonly cluster?: Sql;
  readonly customer?: Sql;
  readonly labels?: Sql;
  /** It is where all of these are together; the ids are a list in JSON. */
  readonly all?: { readonly place: Place; readonly ids: Sql };
  /** It is where one of these is. */
  readonly with?: readonly { readonly place: Place; readonly id: Sql; readonly when?: Sql }[];
}

type Parameter = (value: unknown) => string;

/** Whether the row is within the reach, as a condition. */
export function reachSql(place: Place, reach: Reach, parameter: Parameter, row = "t"): string {
  const { rack, cluster, customer, labels } = place;
  if (place.with) {
    const beside = `${row}_with`;
    return `(${place.with
      .map(
        ({ place: other, id, when }) =>
          `(${when?.(row) ?? "true"} and exists (select 1 from ${other.table} ${beside}
             where ${beside}.id = ${id(row)} and ${reachSql(other, reach, parameter, beside)}))`,
      )
      .join(" or ")})`;
  }
  if (place.all) {
    const { place: each, ids } = place.all;
    const one = `${row}_one`;
    return `(jsonb_array_length(${ids(row)}) > 0 and not exists (select 1 from jsonb_array_elements_text(${ids(row)}) ${row}_id(id)
       where not exists (select 1 from ${each.table} ${one} where ${one}.id = ${row}_id.id and ${reachSql(each, reach, parameter, one)})))`;
  }
  const conditions = [
    oneOf(rack?.(row), reach.racks, parameter),
    oneOf(cluster?.(row), reach.clusters, parameter),
    oneOf(customer?.(row), reach.customers, parameter),
    hasLabel(labels?.(row), reach.labels, parameter),
  ].filter((condition) => condition !== undefined);
  return conditions.length === 0 ? "false" : `(${conditions.join(" and ")}) is true`;
}

/** The same as a condition on `t`, for the things of a kind; those of a kind that is nowhere are not within any reach. */
export const withinOf = ({ place }: { readonly place?: Place }, reach: Reach | undefined): Within | undefined =>
  reach && ((parameter) => (place ? reachSql(place, reach, parameter) : "false"));

/** Whether an entry `j` of the journal is of a thing within the reach, as it is now. What is gone is nowhere. */
export const entriesWithin = (stores: ThingStores, reach: Reach | undefined): Within | undefined =>
  reach &&
  ((parameter) => {
    const kinds = [...stores].flatMap(([kind, { place }]) =>
      place
        ? [
            `j.kind = '${kind}' and exists (select 1 from ${place.table} t where t.id = j.id and ${reachSql(place, reach, parameter)})`,
          ]
        : [],
    );
    return kinds.length === 0 ? "false" : `(${kinds.join(" or ")})`;
  });

function oneOf(column: string | undefined, words: readonly string[], parameter: Parameter): string | undefined {
  if (words.length === 0) return undefined;
  return column === undefined ? "false" : `${column} = any(${parameter(words)}::text[])`;
}

function hasLabel(column: string | undefined, words: readonly string[], parameter: Parameter): string | undefined {
  if (words.length === 0) return undefined;
  if (column === undefined) return "false";
  const labels = words.map((word) => {
    const [key = "", value = ""] = word.split(/=(.*)/s, 2);
    return `${column} @> ${parameter(JSON.stringify({ [key]: value }))}::jsonb`;
  });
  return `(${labels.join(" or ")})`;
}

/** Of these things, those that are not within the reach, in their order; what does not exist is not. */
export async function findOutside(
  db: Queryable,
  stores: ThingStores,
  reach: Reach,
  things: readonly ThingKey[],
): Promise<ThingKey[]> {
  const within = new Set<string>();
  for (const [kind, ofKind] of Map.groupBy(things, (thing) => thing.kind)) {
    const place = stores.get(kind)?.place;
    if (!place) continue;
    const values: unknown[] = [[...new Set(ofKind.map(({ id }) => id))]];
    const condition = reachSql(place, reach, (value) => `$${values.push(value)}`);
    const rows = await db.query<{ id: string }>(
      `select t.id from ${place.table} t where t.id = any($1::text[]) and ${condition}`,
      values,
    );
    for (const { id } of rows) within.add(`${kind}/${id}`);
  }
  return things.filter(({ kind, id }) => !within.has(`${kind}/${id}`));
}
