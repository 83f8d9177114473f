import { type FieldRef, typeNameOf } from "../../kernel/filter/fields.ts";
import type { ListFields } from "./list-fields.ts";

export interface GroupSql {
  /** Never null. */
  readonly expression: string;
  /** What the rows are joined with for it; empty: nothing. */
  readonly join: string;
}

/** A field by whose values things are grouped; undefined for one whose values are too many to be groups. */
export function groupSqlOf<F extends string, T>(
  fields: ListFields<F, T>,
  { field, key }: FieldRef<F>,
  at: number,
  parameter: (value: unknown) => string,
): GroupSql | undefined {
  const { sql, type } = fields[field];
  if (typeof sql !== "string") return undefined;
  switch (typeNameOf(type)) {
    case "time":
      return undefined;
    case "tags":
      return {
        expression: `coalesce(tag_${at}.value, '')`,
        join: ` left join lateral (select distinct unnest(${sql})) as tag_${at}(value) on true`,
      };
    case "labels":
      return { expression: `coalesce(${sql} ->> ${parameter(key)}::text, '')`, join: "" };
    case "number":
      return { expression: `coalesce((${sql})::text, '')`, join: "" };
    default:
      return { expression: `coalesce(${sql}, '')`, join: "" };
  }
}
