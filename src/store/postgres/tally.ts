import type { FieldRef } from "../../kernel/filter/fields.ts";
import type { Filter } from "../../kernel/filter/filter.ts";
import type { Queryable } from "./database.ts";
import { filterSql } from "./filter-sql.ts";
import { columnsOf, type ListFields } from "./list-fields.ts";
import type { Within } from "./listing.ts";
import { groupSqlOf } from "./tally-sql.ts";

/** Things whose fields have the same values. */
export interface Tally {
  /** In the order of the fields; empty where nothing is set. */
  readonly values: readonly string[];
  readonly things: number;
}

export interface TallyDwell {
  readonly values: readonly string[];
  readonly aboveSla: number;
  readonly inTrouble: number;
  readonly oldestSince: Date;
  readonly p50Seconds: number;
  readonly p95Seconds: number;
}

/** Conditions on `t`: of which things it matters how long they are in their state, and which of these are late or in trouble. */
export interface Dwelling {
  readonly applies: string;
  readonly late: string;
  readonly troubled: string;
  /** The groups. */
  readonly groups: readonly (readonly string[])[];
}

interface Tallied<F extends string, T> {
  readonly fields: ListFields<F, T>;
  readonly from: string;
  readonly filter: Filter<F>;
  readonly by: readonly FieldRef<F>[];
  /** What must hold besides, as SQL on `t`. */
  readonly within?: Within | undefined;
}

export async function readTally<F extends string, T>(
  db: Queryable,
  tallied: Tallied<F, T>,
  limit: number,
): Promise<Tally[]> {
  const values: unknown[] = [];
  const { keys, source } = groupedRows(tallied, values);
  return db.query<Tally>({
    text: `select array[${keys.join(", ")}]::text[] as values, count(*)::int as things ${source}
            ${keys.length === 0 ? "" : `group by ${keys.join(", ")}`} order by count(*) desc${keys.map((key) => `, ${key}`).join("")}
            limit ${Math.floor(limit)}`,
    values,
  });
}

export async function readDwell<F extends string, T>(
  db: Queryable,
  tallied: Tallied<F, T>,
  { applies, late, troubled, groups }: Dwelling,
): Promise<TallyDwell[]> {
  if (groups.length === 0 || applies === "false") return [];
  const values: unknown[] = [];
  const { keys, source } = groupedRows(tallied, values, {
    columns: `, t.state_since as since, ${late} as late, ${troubled} as troubled`,
    where: ` and ${applies}`,
  });
  const wanted = keys.map((_, at) => `$${values.push(groups.map((group) => group[at]))}::text[]`);
  const among =
    keys.length === 0 ? "" : `where (${keys.join(", ")}) in (select * from unnest(${wanted.join(", ")}) as wanted)`;
  const age = "extract(epoch from now() - since)";
  return db.query<TallyDwell>({
    text: `select array[${keys.join(", ")}]::text[] as values,
                  count(*) filter (where late)::int as "aboveSla", count(*) filter (where troubled)::int as "inTrouble",
                  min(since) as "oldestSince",
                  percentile_disc(0.5) within group (order by ${age})::float8 as "p50Seconds",
                  percentile_disc(0.95) within group (order by ${age})::float8 as "p95Seconds"
           ${source} ${among} ${keys.length === 0 ? "having count(*) > 0" : `group by ${keys.join(", ")}`}`,
    values,
  });
}

/** The rows with the values by which they are grouped as columns of their own, so that each expression is there once. */
function groupedRows<F extends string, T>(
  { fields, from, filter, by, within }: Tallied<F, T>,
  values: unknown[],
  { columns = "", where = "" } = {},
) {
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const groups = by.map((field, at) => {
    const group = groupSqlOf(fields, field, at, parameter);
    if (group === undefined) throw new Error(`things cannot be grouped by ${field.field}`);
    return group;
  });
  const keys = groups.map((_, at) => `key_${at}`);
  const shown = groups.map(({ expression }, at) => `${expression} as key_${at}`).join(", ");
  const joins = groups.map(({ join }) => join).join("");
  const condition = `${filterSql(filter, columnsOf(fields), values)}${within ? ` and ${within(parameter)}` : ""}`;
  const selected = `${shown}${columns}`.replace(/^, /, "");
  const rows = `select ${selected === "" ? "1" : selected} from ${from}${joins} where ${condition}${where}`;
  return { keys, source: `from (${rows}) as s` };
}
