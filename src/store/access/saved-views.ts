import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

export interface SavedView {
  readonly kind: string;
  readonly name: string;
  readonly filter: string;
  readonly orderBy: string;
  readonly groupBy: readonly string[];
  readonly savedAt: Date;
}

const COLUMNS = `kind, name, filter, order_by as "orderBy", group_by as "groupBy", saved_at as "savedAt"`;

/** Of one owner, by name. */
export const listSavedViews = (db: Queryable, owner: string, kind: string): Promise<SavedView[]> =>
  db.query<SavedView>(
    `select ${COLUMNS} from saved_views where owner = $1 and ($2 = '' or kind = $2) order by kind, name`,
    [owner, kind],
  );

/** One of the same kind and name is replaced. */
export async function saveView(tx: Transaction, owner: string, view: Omit<SavedView, "savedAt">): Promise<SavedView> {
  const { kind, name, filter, orderBy, groupBy } = view;
  const [row] = await tx.query<SavedView>(
    `insert into saved_views (owner, kind, name, filter, order_by, group_by) values ($1, $2, $3, $4, $5, $6::text[])
     on conflict (owner, kind, name)
     do update set filter = excluded.filter, order_by = excluded.order_by, group_by = excluded.group_by, saved_at = now()
     returning ${COLUMNS}`,
    [owner, kind, name, filter, orderBy, groupBy],
  );
  failPoint("saved-views:written");
  if (row === undefined) throw new Error("a saved view was written, and is not there");
  return row;
}

/** Whether there was one. */
export async function deleteSavedView(tx: Transaction, owner: string, kind: string, name: string): Promise<boolean> {
  const gone = await tx.query("delete from saved_views where owner = $1 and kind = $2 and name = $3 returning name", [
    ...[owner, kind, name],
  ]);
  failPoint("saved-views:deleted");
  return gone.length > 0;
}
