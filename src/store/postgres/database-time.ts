import type { Queryable } from "./database.ts";

/** Is told what the database's clock showed while a statement ran, in milliseconds since 1970. */
export type OnTime = (shown: number) => void;

/** For statements that are sent anyway. It is read once, however many rows there are; not `now()`, which tells when the transaction began. */
export const SHOWN_TIME = "(select extract(epoch from clock_timestamp())::float8 * 1000) as shown";

/** For callers that have no other statement to send. */
export async function askTime(db: Queryable, onTime: OnTime): Promise<void> {
  const [row] = await db.query<{ shown: number }>({ hot: true, text: `select ${SHOWN_TIME}` });
  if (row) onTime(row.shown);
}
