import type { Queryable, Transaction } from "../postgres/database.ts";

export interface CatalogQuery {
  readonly names?: readonly string[];
  readonly after?: string | undefined;
  readonly limit?: number;
}

/** A table whose rows plans and machines refer to by name. */
export interface CatalogTable<Row> {
  /** In the order of their names. */
  list(db: Queryable, query?: CatalogQuery): Promise<Row[]>;
  /**
   * Of the named rows those that there are, in the order of their names; they cannot be removed until the end of the transaction.
   * Any number may hold them at once. What was removed a moment ago is not there any more.
   */
  hold(tx: Transaction, names: readonly string[]): Promise<Row[]>;
  /** Waits for those who hold it; then nobody can until the end of the transaction. Returns whether there is one. */
  holdAlone(tx: Transaction, name: string): Promise<boolean>;
}

/** `columns` names the column of each field. */
export function defineCatalogTable<Row extends { readonly name: string }>(
  table: string,
  columns: { readonly [Field in keyof Row & string]: string },
): CatalogTable<Row> {
  const fields = Object.entries(columns)
    .map(([field, column]) => (field === column ? column : `${column} as "${field}"`))
    .join(", ");
  return {
    list: (db, { names, after, limit } = {}) =>
      db.query<Row>({
        text: `select ${fields} from ${table}
          where ($1::text[] is null or name = any($1)) and ($2::text is null or name > $2) order by name
          ${limit === undefined ? "" : `limit ${Math.floor(limit)}`}`,
        values: [names ?? null, after ?? null],
        ...(limit === undefined && { hot: true }),
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
