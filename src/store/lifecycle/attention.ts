import type { StateSpec } from "../../kernel/lifecycle.ts";
import type { Queryable } from "../postgres/database.ts";
import type { Within } from "../postgres/listing.ts";
import type { ThingStore } from "./things.ts";

/**
 * Of which things somebody should know, besides those whose state means trouble and those above their SLA: SQL on the table `t`, found
 * by an index or in a table that stays small.
 */
export interface AttentionSql {
  readonly applies: string;
  /** A filter of the kind's list that finds them. */
  readonly filter: string;
  /** Since when. Absent: since when passes fail or wait, or else since when it is in its state. */
  readonly since?: string;
  /** Why, for programs. Absent: the cause of the last pass, or the one that its state carries. */
  readonly cause?: string;
  /** Why, for people. Absent: what the last pass said. */
  readonly message?: string;
  /** Of these, those whose trouble another thing's names already. */
  readonly covered?: string;
}

const CAUSE = `coalesce(t.outcome -> 'cause' ->> 'code', t.state_data -> 'failure' ->> 'code', '')`;
const MESSAGE = `coalesce(t.outcome ->> 'reason', '')`;
const SINCE = `coalesce((t.outcome ->> 'since')::timestamptz, t.state_since)`;

type Attended = Pick<ThingStore, "lifecycle" | "slaCounts" | "attention">;

const wordsSql = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(", ");

const statesWhere = ({ lifecycle }: Attended, is: (state: StateSpec) => boolean): string[] =>
  Object.entries<StateSpec>(lifecycle.states).flatMap(([name, state]) => (is(state) ? [name] : []));

/** States that things can be in for good or bad: all but those in which they have ended. */
const liveStatesOf = (store: Attended): string[] => statesWhere(store, ({ terminal }) => terminal !== true);

/** What ended without success is past; what else is in trouble waits for somebody. */
const isTrouble = ({ trouble, terminal }: StateSpec): boolean => trouble === true && terminal !== true;

const inStates = (states: readonly string[]): string =>
  states.length === 0 ? "false" : `t.state in (${wordsSql(states)})`;

/** In a state that means trouble, or asking for somebody. */
export const troubledSql = (store: Attended): string =>
  anyOf([inStates(statesWhere(store, isTrouble)), store.attention?.applies]);

/** Longer in its state than the state's SLA. State by state, so that an index by state finds the few among the many. */
export function aboveSlaSql({ lifecycle, slaCounts = "true" }: Attended): string {
  const late = Object.entries<StateSpec>(lifecycle.states).flatMap(([name, { sla }]) =>
    sla === undefined
      ? []
      : [`(t.state = '${name}' and t.state_since < now() - interval '${sla} ms' and ${slaCounts})`],
  );
  return anyOf(late);
}

/** Those of which it matters how long they are in their state. */
export const dwellingSql = (store: Attended): string =>
  anyOf([
    inStates(statesWhere(store, (state) => state.sla !== undefined || isTrouble(state))),
    store.attention?.applies,
  ]);

function anyOf(conditions: readonly (string | undefined)[]): string {
  const some = conditions.filter((condition) => condition !== undefined && condition !== "false");
  return some.length === 0 ? "false" : `(${some.join(" or ")})`;
}

export type AttentionReason = "needs_person" | "trouble" | "above_sla";

export interface AttentionRow {
  readonly reason: AttentionReason;
  readonly state: string;
  readonly cause: string;
  readonly message: string;
  readonly things: number;
  readonly since: Date;
  readonly rack: string | null;
  readonly ids: readonly string[];
}

/** The most things of a kind that are read for it: a site that has lost its network has every one of them in trouble. */
export const MOST_ATTENDED = 20_000;
const SHOWN_IDS = 5;

/** Things of a kind that need somebody, by reason, state and cause; the longest waiting first. `rack` is where their rack is. */
export async function listAttention(
  db: Queryable,
  store: ThingStore,
  {
    limit,
    rack = "null::text",
    within,
  }: { readonly limit: number; readonly rack?: string | undefined; readonly within?: Within | undefined },
): Promise<AttentionRow[]> {
  const {
    applies = "false",
    since = SINCE,
    cause = CAUSE,
    message = MESSAGE,
    covered = "false",
  } = store.attention ?? {};
  const trouble = inStates(statesWhere(store, isTrouble));
  const late = aboveSlaSql(store);
  const values: unknown[] = [];
  const inReach = within ? ` and ${within((value) => `$${values.push(value)}`)}` : "";
  return db.query<AttentionRow>(
    `select reason, state, cause, count(*)::int as things, min(since) as since,
            case when count(distinct coalesce(rack, '')) = 1 then min(rack) end as rack,
            (array_agg(id order by since, id))[1:${SHOWN_IDS}] as ids, (array_agg(message order by since, id))[1] as message
       from (select t.id, t.state, ${rack} as rack,
                    case when ${applies} then 'needs_person' when ${trouble} then 'trouble' else 'above_sla' end as reason,
                    case when ${applies} then ${cause} else ${CAUSE} end as cause,
                    case when ${applies} then ${message} else ${MESSAGE} end as message,
                    case when ${applies} then ${since} else t.state_since end as since
               from ${store.table} t where ${anyOf([applies === "false" ? applies : `(${applies} and ${covered} is not true)`, trouble, late])}${inReach} limit ${MOST_ATTENDED}) as s
      group by reason, state, cause order by min(since), reason, state, cause limit ${Math.floor(limit)}`,
    values,
  );
}

export interface StateTotal {
  readonly state: string;
  readonly things: number;
}

/** How many things are in each state that has any, those that have ended left out: they are most of what there is in the long run. */
export function countLiveStates(db: Queryable, store: ThingStore, within?: Within): Promise<StateTotal[]> {
  const values: unknown[] = [liveStatesOf(store)];
  const inReach = within ? ` and ${within((value) => `$${values.push(value)}`)}` : "";
  return db.query<StateTotal>(
    `select t.state, count(*)::int as things from ${store.table} t where t.state = any($1)${inReach} group by t.state order by t.state`,
    values,
  );
}
