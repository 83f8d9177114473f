import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Queryable } from "../postgres/database.ts";

/** A state that was entered, and when. */
export interface StateRecord {
  readonly state: string;
  readonly carried: JsonObject;
  readonly stateVersion: number;
  readonly at: Date;
}

/** The latest states that each thing went through, oldest first; also of things that are gone. */
export async function listStateHistories(
  db: Queryable,
  kind: string,
  ids: readonly string[],
  most: number,
): Promise<ReadonlyMap<string, readonly StateRecord[]>> {
  const rows = await db.query<{ id: string } & StateRecord>(
    `select t.id, j.state, j.carried, j."stateVersion", j.at
       from unnest($2::text[]) as t(id) cross join lateral (
         select to_state as state, coalesce(data -> 'state', '{}') as carried, (data ->> 'state_version')::bigint as "stateVersion",
                at, epoch, xid, seq
           from journal where kind = $1 and id = t.id and type in ('created', 'transition')
          order by epoch desc, xid desc, seq desc limit ${Math.floor(most)}) as j
      order by t.id, j.epoch, j.xid, j.seq`,
    [kind, ids],
  );
  return Map.groupBy(rows, ({ id }) => id);
}
