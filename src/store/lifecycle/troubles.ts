import type { Queryable } from "../postgres/database.ts";
import type { ThingStore } from "./things.ts";

/** Why somebody should look at a thing: a person is needed, the last pass failed, or it is in a state that its table calls trouble. */
export type Trouble = "needs_person" | "failing" | "failed";

export interface TroubleCount {
  readonly state: string;
  readonly trouble: Trouble;
  /** Empty where the kind stands in no rack. */
  readonly rack: string;
  /** A cause, by its code; empty where nobody recorded one. */
  readonly cause: string;
  readonly things: number;
}

/** As they are stored: of the last pass, and of what led to an error. */
const CAUSE_SQL = `coalesce(t.outcome -> 'cause' ->> 'code', t.state_data -> 'failure' ->> 'code', '')`;

/**
 * Things in trouble, by why. A thing in several troubles counts in each. Those that have ended are most of what there is in the long
 * run, and none of them is in trouble any more: they are not read.
 */
export async function countTroubles(
  db: Queryable,
  { lifecycle, table, rackSql = "''" }: Pick<ThingStore, "lifecycle" | "table" | "rackSql">,
): Promise<TroubleCount[]> {
  const live = Object.entries(lifecycle.states).filter(([, { terminal }]) => !terminal);
  const bad = live.flatMap(([state, { trouble }]) => (trouble ? [state] : []));
  return db.query<TroubleCount>(
    `select state, trouble, rack, cause, count(*)::int as things from (
       select t.state, coalesce(${rackSql}, '') as rack, ${CAUSE_SQL} as cause, unnest(array_remove(array[
                case t.outcome ->> 'type' when 'needs_intervention' then 'needs_person' when 'failing' then 'failing' end,
                case when t.state = any($2) then 'failed' end], null)) as trouble
         from ${table} t
        where t.state = any($1) and (t.state = any($2) or t.outcome ->> 'type' in ('failing', 'needs_intervention'))) as seen
      group by state, trouble, rack, cause`,
    [live.map(([state]) => state), bad],
  );
}
