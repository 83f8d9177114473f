import type { Queryable, Transaction } from "../postgres/database.ts";
import type { ListFields } from "../postgres/list-fields.ts";
import { createListing, type Listing } from "../postgres/listing.ts";

/** A table whose rows plans and machines refer to by name. */
export interface CatalogTable<Row> {
  /** As callers list it. */
  readonly listing: Listing<string, Row>;
  /** The named rows, or all, in the order of their names. */
  list(db: Queryable, query?: { readonly names?: readonly string[] }): Promise<Row[]>;
  /**
   * Of the named rows those that there are, in the order of their names; they cannot be removed until the end of the transaction.
   * Any number may hold them at once. What was removed a moment ago is not there any more.
   */
  hold(tx: Transaction, names: readonly string[]): Promise<Row[]>;
  /** Waits for those who hold it; then nobody can until the end of the transaction. Returns whether there is one. */
  holdAlone(tx: Transaction, name: string): Promise<boolean>;
}

interface Entry {
  readonly name: string;
  readonly createdAt: Date;
}

/** Fields of a list that every catalog has. */
export const catalogFields = <Row extends Entry>(what: string): ListFields<"name" | "created_at", Row> => ({
  name: { type: "text", sql: "t.name", sort: "set", doc: `The name of the ${what}.`, of: ({ name }) => name },
  created_at: {
    ...{ type: "time", sql: "t.created_at", sort: "set", doc: "When it was recorded." },
    of: ({ createdAt }) => createdAt,
  },
});

interface CatalogOptions<Row> {
  readonly table: string;
  /** What callers call the rows, such as "images". */
  readonly called: string;
  /** The column of each field of the row. */
  readonly columns: { readonly [Field in keyof Row & string]: string };
  /** What callers filter and sort by. */
  readonly fields: ListFields<string, Row>;
}

export function defineCatalogTable<Row extends { readonly name: string }>(
  options: CatalogOptions<Row>,
): CatalogTable<Row> {
  const { table, called, columns } = options;
  const fields = Object.entries(columns)
    .map(([field, column]) => (field === column ? column : `${column} as "${field}"`))
    .join(", ");
  return {
    listing: createListing<string, Row, Row & { readonly id: string }>({
      ...{ name: called, fields: options.fields, id: "name", idOf: ({ name }) => name },
      ...{ columns: fields, from: `${table} t`, parse: (row) => row },
    }),
    list: (db, { names } = {}) =>
      db.query<Row>({
        hot: true,
        text: `select ${fields} from ${table} where ($1::text[] is null or name = any($1)) order by name`,
        values: [names ?? null],
      }),
    hold: (tx, names) =>
      tx.query<Row>({
        hot: true,
        text: `select ${fields} from ${table} where name = any($1) order by name for key share`,
        values: [names],
      }),
    holdAlone: async (tx, name) =>
      (await tx.query(`select 1 from ${table} where name = $1 for update`, [name])).length > 0,
  };
}
