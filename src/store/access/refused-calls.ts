import type { Duration } from "../../kernel/time/duration.ts";
import type { Database, Queryable } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { toJsonText } from "../postgres/json-text.ts";

/** A sign-in that failed, or a call that the caller's roles do not allow. */
export const REFUSALS = ["sign_in_failed", "refused"] as const;
export type Refusal = (typeof REFUSALS)[number];

/** Calls of one minute that were refused for the same reason to the same caller. */
export interface RefusedCalls {
  readonly minute: Date;
  /** Where they came from; empty where the connection has no address. */
  readonly address: string;
  /** Who called; empty where nobody signed in. */
  readonly name: string;
  readonly method: string;
  readonly outcome: Refusal;
  readonly calls: number;
  readonly lastAt: Date;
}

/** Adds to what other replicas, and this one, have counted of the same minutes. */
export async function countRefusedCalls(db: Queryable, counted: readonly RefusedCalls[]): Promise<void> {
  if (counted.length === 0) return;
  await db.execute(
    `insert into refused_calls as r (minute, address, name, method, outcome, calls, last_at)
     select minute, address, name, method, outcome, calls, "lastAt"
       from jsonb_to_recordset($1) as c(minute timestamptz, address text, name text, method text, outcome text, calls bigint, "lastAt" timestamptz)
      order by minute, address, name, method, outcome
     on conflict (minute, address, name, method, outcome) do update
       set calls = r.calls + excluded.calls, last_at = greatest(r.last_at, excluded.last_at)`,
    [toJsonText(counted)],
  );
  failPoint("refused-calls:counted");
}

/** However long somebody keeps at it, the table stays this long. */
const MOST_ROWS = 1_000_000;

/** Removes rows past their retention, and the oldest of more than a million; answers how many. */
export function forgetRefusedCalls(
  db: Database,
  {
    keptFor,
    most,
    mostRows = MOST_ROWS,
  }: { readonly keptFor: Duration; readonly most: number; readonly mostRows?: number },
): Promise<number> {
  return db.transaction(async (tx) => {
    const rows = await tx.query<{ id: string }>(
      `delete from refused_calls where id in (
         select id from refused_calls
          where last_at < greatest(now() - $1 * interval '1 ms',
                                   (select last_at from refused_calls order by last_at desc, id desc offset $2 limit 1))
          order by last_at limit $3 for update skip locked)
       returning id`,
      [keptFor, mostRows - 1, Math.floor(most)],
    );
    if (rows.length > 0) failPoint("refused-calls:forgotten");
    return rows.length;
  });
}
