import type { FieldRef } from "../../kernel/filter/fields.ts";
import type { Filter } from "../../kernel/filter/filter.ts";
import type { SortKey } from "../../kernel/filter/order-by.ts";
import { takeTurn } from "../../kernel/time/turns.ts";
import type { Queryable } from "./database.ts";
import { filterSql } from "./filter-sql.ts";
import { columnsOf, type ListFields } from "./list-fields.ts";
import { afterSql, orderSql, type SortValues, sortColumnOf } from "./sort-sql.ts";
import { type Dwelling, readDwell, readTally, type Tally, type TallyDwell } from "./tally.ts";

/** What is asked of a list. */
export interface ListQuery<F extends string> {
  readonly filter: Filter<F>;
  /** As `completeOrder` gives it. */
  readonly order: readonly SortKey<F>[];
  /** The values of the last row of the page before. */
  readonly after?: SortValues | undefined;
  readonly limit: number;
  /** What must hold besides, as SQL on `t`. */
  readonly within?: Within | undefined;
  /** Rows to leave out at the beginning. For clients that page so; with it, rows that come or go in between are missed or repeated. */
  readonly offset?: number;
}

/** A condition that is made with the parameters that it refers to. */
export type Within = (parameter: (value: unknown) => string) => string;

/** Things of one kind that callers list: what they can filter and sort by, and how the rows are read. */
export interface Listing<F extends string, T> {
  /** What callers call them, such as "machines". */
  readonly name: string;
  /** Of the things in it. Absent: they have no lifecycle. */
  readonly kind?: string;
  readonly fields: ListFields<F, T>;
  /** The order without `order_by`. */
  readonly order: readonly SortKey<F>[];
  /** The order with what makes it one: rows that are equal by it stand in the order of their ids. */
  completeOrder(order: readonly SortKey<F>[]): readonly SortKey<F>[];
  /**
   * What `take` makes of the rows, in order. Each row is let go when it was taken: a long list would otherwise be held in every form
   * that it goes through, and copied whole by each collection of garbage meanwhile.
   */
  collect<U>(db: Queryable, query: ListQuery<F>, take: (thing: T, place: SortValues) => U): Promise<U[]>;
  count(db: Queryable, filter: Filter<F>, within?: Within): Promise<number>;
  /** How many there are by the values of fields, the most first. */
  tally(db: Queryable, grouping: Grouping<F>, limit: number): Promise<Tally[]>;
  /** Of these groups, how long the things that are at work or in trouble have been in their states. */
  dwell(db: Queryable, grouping: Grouping<F>, of: Dwelling): Promise<TallyDwell[]>;
}

/** Which things are counted, and by the values of which fields. */
export interface Grouping<F extends string> {
  readonly filter: Filter<F>;
  readonly by: readonly FieldRef<F>[];
  readonly within?: Within | undefined;
}

interface ListingOptions<F extends string, T, Row> {
  readonly name: string;
  readonly kind?: string;
  readonly fields: ListFields<F, T>;
  /** The field that tells all rows apart, and its value in a row; the column `id` unless told. */
  readonly id: F;
  readonly idOf?: (row: Row) => string;
  readonly order?: readonly SortKey<F>[];
  readonly columns: string;
  /** With `t` for the table that the fields are of. */
  readonly from: string;
  /** The same without what no field needs; absent: it is all needed. */
  readonly countFrom?: string;
  readonly parse: (row: Row) => T;
}

/** Rows that take so long to convert and to send that others wait for it. */
const LONG_LIST = 100;

export function createListing<F extends string, T, Row extends { id: string }>(
  options: ListingOptions<F, T, Row>,
): Listing<F, T> {
  const { name, kind, fields, id, idOf = (row: Row) => row.id, columns, from, countFrom = from, parse } = options;
  const idOrder = { field: id, descending: false };
  const filterColumns = columnsOf(fields);
  const completeOrder = (order: readonly SortKey<F>[]) =>
    order.some(({ field }) => field === id)
      ? order.slice(0, order.findIndex(({ field }) => field === id) + 1)
      : [...order, { ...idOrder, descending: order.at(-1)?.descending ?? false }];
  return {
    name,
    ...(kind !== undefined && { kind }),
    fields,
    order: options.order ?? [idOrder],
    completeOrder,
    async collect(db, query, take) {
      const values: unknown[] = [];
      const parameter = (value: unknown) => `$${values.push(value)}`;
      const where = filterSql(query.filter, filterColumns, values);
      const within = query.within === undefined ? "" : ` and ${query.within(parameter)}`;
      const sort = query.order.map((key) => sortColumnOf(fields, key, parameter));
      const after = query.after === undefined ? "" : ` and ${afterSql(sort, query.after, parameter)}`;
      // Where the id is the whole order, each row has its place in it already.
      const isById = query.order.length === 1 && query.order[0]?.field === id;
      const places = isById ? "" : sort.map(({ asText }, at) => `, ${asText} as place_${at}`).join("");
      const offset = query.offset === undefined ? "" : ` offset ${Math.floor(query.offset)}`;
      const rows: ((Row & Record<string, string | null>) | null)[] = await db.query({
        text: `select ${columns}${places} from ${from} where ${where}${within}${after}
                order by ${orderSql(sort)} limit ${Math.floor(query.limit)}${offset}`,
        values,
      });
      if (rows.length > LONG_LIST) await takeTurn();
      const placeOf = (row: Row & Record<string, string | null>): SortValues =>
        isById ? [idOf(row)] : sort.map((_, at) => row[`place_${at}`] ?? null);
      return rows.map((row, at) => {
        rows[at] = null;
        const read = row as Row & Record<string, string | null>;
        return take(parse(read), placeOf(read));
      });
    },
    async count(db, filter, within) {
      const values: unknown[] = [];
      const where = filterSql(filter, filterColumns, values);
      const more = within === undefined ? "" : ` and ${within((value) => `$${values.push(value)}`)}`;
      const text = `select count(*) as total from ${countFrom} where ${where}${more}`;
      const [row] = await db.query<{ total: number }>({ text, values });
      return row?.total ?? 0;
    },
    tally: (db, grouping, limit) => readTally(db, { fields, from: countFrom, ...grouping }, limit),
    dwell: (db, grouping, of) => readDwell(db, { fields, from: countFrom, ...grouping }, of),
  };
}
