import { type FieldRef, type FieldType, typeNameOf } from "../../kernel/filter/fields.ts";
import type { FieldValue } from "../../kernel/filter/filter.ts";
import type { FilterColumn, FilterColumns } from "./filter-sql.ts";

/** A field of a list: what callers filter and sort by. */
export interface ListField<T> {
  readonly type: FieldType;
  /**
   * Where the value is: an expression of the field's own type, or a time that is kept as text in the form of `toISOString`. Never made
   * from what a caller sent.
   */
  readonly sql: string | { readonly isoTime: string };
  /** For people; the reference of filters is printed from it. */
  readonly doc: string;
  /** Whether lists can be sorted by it, and whether the value may be missing. Absent: it is no order. */
  readonly sort?: "set" | "nullable";
  /** The same value in memory; `key` is that of a label. */
  readonly of: (thing: T, key: string, now: Date) => FieldValue;
}

export type ListFields<F extends string, T> = Readonly<Record<F, ListField<T>>>;

/** Keeps the names of the fields as their type. */
export const defineFields =
  <T>() =>
  <F extends string>(fields: ListFields<F, T>): ListFields<F, T> =>
    fields;

const mapFields = <F extends string, T, U>(fields: ListFields<F, T>, map: (field: ListField<T>) => U) =>
  Object.fromEntries((Object.entries(fields) as [F, ListField<T>][]).map(([name, field]) => [name, map(field)])) as {
    readonly [name in F]: U;
  };

/** What a filter may compare. */
export const filterFieldsOf = <F extends string, T>(fields: ListFields<F, T>): Readonly<Record<F, FieldType>> =>
  mapFields(fields, ({ type }) => type);

/** What a list can be sorted by: only some of the fields are there, whatever the type says. */
export const sortFieldsOf = <F extends string, T>(fields: ListFields<F, T>): Readonly<Record<F, FieldType>> =>
  Object.fromEntries(
    Object.entries<ListField<T>>(fields).flatMap(([name, { type, sort }]) => (sort ? [[name, type] as const] : [])),
  ) as Readonly<Record<F, FieldType>>;

export const columnsOf = <F extends string, T>(fields: ListFields<F, T>): FilterColumns<F> =>
  mapFields(fields, columnOf);

function columnOf<T>({ type, sql }: ListField<T>): FilterColumn {
  if (typeof sql !== "string") return sql;
  const name = typeNameOf(type);
  switch (name) {
    case "labels":
      return { labels: sql };
    case "tags":
      return { tags: sql };
    case "number":
      return { number: sql };
    case "time":
      return { time: sql };
    default:
      return sql;
  }
}

/** A number in facts; one that is none there is as one that is missing, and spoils no list. */
export const numberFactSql = (name: string): string =>
  `(case when jsonb_typeof(t.facts -> '${name}') = 'number' then (t.facts ->> '${name}')::numeric end)`;

/** The value that a comparison of the filter is about, for a thing in memory. */
export const readField =
  <F extends string, T>(fields: ListFields<F, T>, thing: T, now: Date) =>
  ({ field, key = "" }: FieldRef<F>): FieldValue =>
    fields[field].of(thing, key, now);
