import { typeNameOf } from "../../kernel/filter/fields.ts";
import type { SortKey } from "../../kernel/filter/order-by.ts";
import type { ListFields } from "./list-fields.ts";

/** The values by which a row stands where it does in a list, one for each sort key, as text; null where there is none. */
export type SortValues = readonly (string | null)[];

/** What a list is sorted by, in SQL. What is not set comes last, and first where the order descends, as indexes have it. */
export interface SortColumn {
  readonly expression: string;
  /** The value as text, from which the very same value can be made again. */
  readonly asText: string;
  /** What that text is of. */
  readonly type: "text" | "numeric" | "timestamptz";
  readonly nullable: boolean;
  readonly descending: boolean;
}

/** To the microsecond, as the database keeps it: a `Date` has none, and rows would be left out. */
const timeText = (expression: string): string =>
  `to_char(${expression} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

export function sortColumnOf<F extends string, T>(
  fields: ListFields<F, T>,
  { field, key, descending }: SortKey<F>,
  parameter: (value: unknown) => string,
): SortColumn {
  const { sql, sort, type } = fields[field];
  if (sort === undefined) throw new Error(`lists cannot be sorted by ${field}`);
  const rest = { nullable: sort === "nullable", descending };
  if (typeof sql !== "string") {
    const expression = `(${sql.isoTime} collate "C")`;
    return { ...rest, expression, asText: expression, type: "text" };
  }
  switch (typeNameOf(type)) {
    case "number":
      return { ...rest, expression: sql, asText: `(${sql})::text`, type: "numeric" };
    case "time":
      return { ...rest, expression: sql, asText: timeText(sql), type: "timestamptz" };
    case "labels": {
      const expression = `(${sql} ->> ${parameter(key ?? "")}::text)`;
      return { ...rest, nullable: true, expression, asText: expression, type: "text" };
    }
    default:
      return { ...rest, expression: sql, asText: sql, type: "text" };
  }
}

export const orderSql = (columns: readonly SortColumn[]): string =>
  columns.map(({ expression, descending }) => `${expression}${descending ? " desc" : ""}`).join(", ");

/** The rows that come after the one with these values. The last column tells all rows apart. */
export function afterSql(
  columns: readonly SortColumn[],
  after: SortValues,
  parameter: (value: unknown) => string,
): string {
  const [first] = columns;
  const isPlain = columns.every(({ nullable, descending }) => !nullable && descending === first?.descending);
  const value = (column: SortColumn, at: number) => `${parameter(after[at])}::${column.type}`;
  // An index can begin right there.
  if (first && isPlain) {
    const compare = first.descending ? "<" : ">";
    if (columns.length === 1) return `${first.expression} ${compare} ${value(first, 0)}`;
    return `(${columns.map(({ expression }) => expression).join(", ")}) ${compare} (${columns.map(value).join(", ")})`;
  }
  return nested(columns, after, parameter);
}

function nested(columns: readonly SortColumn[], after: SortValues, parameter: (value: unknown) => string): string {
  const [column, ...rest] = columns;
  if (!column) return "false";
  const { expression, type, nullable, descending } = column;
  const [value = null, ...others] = after;
  const tail = () => nested(rest, others, parameter);
  // Null is the greatest of all values.
  if (value === null) {
    const beyond = descending ? `${expression} is not null` : "false";
    return rest.length === 0 ? beyond : `(${beyond} or (${expression} is null and ${tail()}))`;
  }
  const here = `${parameter(value)}::${type}`;
  const isBeyond = `${expression} ${descending ? "<" : ">"} ${here}`;
  const beyond = nullable && !descending ? `(${isBeyond} or ${expression} is null)` : isBeyond;
  return rest.length === 0 ? beyond : `(${beyond} or (${expression} = ${here} and ${tail()}))`;
}
