import type { Duration } from "../../kernel/time/duration.ts";
import type { Queryable } from "../postgres/database.ts";

/**
 * Active nodes whose agents have been silent for too long. A node that became active a moment ago has that much time of its own, also
 * one that an operator recovered. Of these nodes alone, where they are named.
 */
export async function findSilent(
  db: Queryable,
  {
    after,
    limit,
    among = null,
  }: { readonly after: Duration; readonly limit: number; readonly among?: readonly string[] | null },
): Promise<string[]> {
  const rows = await db.query<{ id: string }>({
    name: "fleet_silence.silent",
    text: `select n.id from fleet_nodes n left join fleet_heartbeats h on h.node_id = n.id
            where n.state = 'active' and n.state_since < now() - $1 * interval '1 ms'
              and coalesce(h.seen_at, '-infinity') < now() - $1 * interval '1 ms' and ($2::text[] is null or n.id = any($2))
            order by n.id limit $3`,
    values: [after, among, limit],
  });
  return rows.map(({ id }) => id);
}

/** Offline nodes whose agents have said since that they are well. Who is quarantined stays that, whatever its agent says. */
export async function findHeard(
  db: Queryable,
  { limit, among = null }: { readonly limit: number; readonly among?: readonly string[] | null },
): Promise<string[]> {
  const rows = await db.query<{ id: string }>({
    name: "fleet_silence.heard",
    text: `select n.id from fleet_nodes n join fleet_heartbeats h on h.node_id = n.id
            where n.state = 'offline' and n.facts ->> 'quarantineReason' is null
              and h.health = 'healthy' and h.health_at > n.state_since and ($1::text[] is null or n.id = any($1))
            order by n.id limit $2`,
    values: [among, limit],
  });
  return rows.map(({ id }) => id);
}

/** What was heard last of agents, by the state of their nodes. */
export interface AgentsHeard {
  readonly state: string;
  /** silent: nothing for that long. unknown: it calls, and has not said yet how its node is. */
  readonly heard: "healthy" | "unhealthy" | "unknown" | "silent";
  readonly agents: number;
  /** The longest that one of them has not called, in seconds; one that never did counts from its enrolment. */
  readonly oldestSeconds: number;
}

/** Agents of nodes that were not removed. */
export const measureAgents = (db: Queryable, after: Duration): Promise<AgentsHeard[]> =>
  db.query<AgentsHeard>({
    name: "fleet_silence.measure",
    text: `select state, heard, count(*)::int as agents, max(age)::float8 as "oldestSeconds" from (
             select n.state, greatest(0, extract(epoch from now() - coalesce(h.seen_at, a.enrolled_at))) as age,
                    case when coalesce(h.seen_at, a.enrolled_at) < now() - $1 * interval '1 ms' then 'silent'
                         else coalesce(h.health, 'unknown') end as heard
               from fleet_agents a join fleet_nodes n on n.id = a.node_id left join fleet_heartbeats h on h.node_id = a.node_id
              where n.state <> 'deleted') as heard_of
           group by state, heard`,
    values: [after],
  });
