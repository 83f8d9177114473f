import type { SecretStore } from "../access/secrets.ts";
import { lockThings } from "../lifecycle/locks.ts";
import type { Database, Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

/** Who answers for a node. */
export interface FleetAgent {
  readonly nodeId: string;
  /** Of the bearer token that the last enrolment was given: only its holder is the agent. */
  readonly tokenId: string;
  readonly issue: number;
  readonly requestSha: Buffer;
  readonly enrolledAt: Date;
  /** Null: the bearer has not been used yet. */
  readonly usedAt: Date | null;
}

const COLUMNS = `node_id as "nodeId", token_id as "tokenId", issue, request_sha as "requestSha", enrolled_at as "enrolledAt",
  used_at as "usedAt"`;

export async function findAgent(db: Queryable, nodeId: string): Promise<FleetAgent | undefined> {
  const [agent] = await db.query<FleetAgent>({
    hot: true,
    text: `select ${COLUMNS} from fleet_agents where node_id = $1`,
    values: [nodeId],
  });
  return agent;
}

/** What an agent's call goes by. */
export interface AgentStanding {
  readonly nodeId: string;
  readonly tokenId: string;
  readonly nodeState: string;
  readonly isUsed: boolean;
}

/** For many calls at once; nodes without an agent are left out. */
export async function findStandings(
  db: Queryable,
  nodeIds: readonly string[],
): Promise<ReadonlyMap<string, AgentStanding>> {
  const rows = await db.query<AgentStanding>({
    hot: true,
    text: `select a.node_id as "nodeId", a.token_id as "tokenId", n.state as "nodeState", a.used_at is not null as "isUsed"
             from fleet_agents a join fleet_nodes n on n.id = a.node_id where a.node_id = any($1)`,
    values: [nodeIds],
  });
  return new Map(rows.map((row) => [row.nodeId, row]));
}

/** The agent of before is none any more, and nothing that it said counts. The caller holds the node's lock. */
export async function replaceAgent(
  tx: Transaction,
  agent: Pick<FleetAgent, "nodeId" | "tokenId" | "issue" | "requestSha">,
): Promise<void> {
  await tx.execute(
    `insert into fleet_agents (node_id, token_id, issue, request_sha) values ($1, $2, $3, $4)
     on conflict (node_id) do update set token_id = excluded.token_id, issue = excluded.issue,
       request_sha = excluded.request_sha, enrolled_at = now(), used_at = null`,
    [agent.nodeId, agent.tokenId, agent.issue, agent.requestSha],
  );
  await tx.execute(`delete from fleet_heartbeats where node_id = $1`, [agent.nodeId]);
  failPoint("fleet-agents:replaced");
}

export async function noteUsed(db: Queryable, nodeId: string, tokenId: string): Promise<void> {
  await db.execute({
    hot: true,
    text: `update fleet_agents set used_at = now() where node_id = $1 and token_id = $2 and used_at is null`,
    values: [nodeId, tokenId],
  });
}

/** Nobody answers for the node any more: its bearer is refused from now on, by all replicas. Doing it again is harmless. */
export async function dismissAgent(db: Database, nodeId: string): Promise<void> {
  await db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: "fleet_node", id: nodeId }]);
    await tx.execute(
      `update tokens set revoked_at = coalesce(revoked_at, now())
        where id in (select token_id from fleet_agents where node_id = $1)`,
      [nodeId],
    );
    await tx.execute(`delete from fleet_agents where node_id = $1`, [nodeId]);
    await tx.execute(`delete from fleet_heartbeats where node_id = $1`, [nodeId]);
    failPoint("fleet-agents:dismissed");
  });
}

export type Health = "healthy" | "unhealthy";

/** What was heard last of the agent of a node. */
export interface Heartbeat {
  readonly nodeId: string;
  readonly seenAt: Date;
  /** What the agent said last of the node; null: nothing yet. */
  readonly health: Health | null;
  readonly healthAt: Date | null;
  readonly message: string;
  readonly agentVersion: string;
}

export interface Sign {
  readonly nodeId: string;
  /** Absent: the agent called, and said nothing of the node. */
  readonly health?: Health;
  readonly message?: string;
  readonly agentVersion?: string;
}

/** What agents said, many at once; of each node once. Returns the nodes that are healthy now, and were not said to be before. */
export async function noteHeartbeats(db: Queryable, signs: readonly Sign[]): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ node_id: string }>({
    hot: true,
    text: `with s as (
        select * from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as s(node_id, health, message, version)
      ), before as (
        select h.node_id, h.health from fleet_heartbeats h join s using (node_id) order by h.node_id for update of h
      ), written as (
        insert into fleet_heartbeats as h (node_id, seen_at, health, health_at, message, agent_version)
        select s.node_id, now(), s.health, case when s.health is not null then now() end, coalesce(s.message, ''), coalesce(s.version, '')
          from s left join before b using (node_id) order by s.node_id
        on conflict (node_id) do update set seen_at = now(),
          health = coalesce(excluded.health, h.health), health_at = coalesce(excluded.health_at, h.health_at),
          message = case when excluded.health is null then h.message else excluded.message end,
          agent_version = case when excluded.agent_version = '' then h.agent_version else excluded.agent_version end
      ) select s.node_id from s left join before b using (node_id)
         where s.health = 'healthy' and b.health is distinct from 'healthy'`,
    values: [
      signs.map(({ nodeId }) => nodeId),
      signs.map(({ health = null }) => health),
      signs.map(({ message = null }) => message),
      signs.map(({ agentVersion = null }) => agentVersion),
    ],
  });
  return new Set(rows.map(({ node_id }) => node_id));
}

export async function findHeartbeats(
  db: Queryable,
  nodeIds: readonly string[],
): Promise<ReadonlyMap<string, Heartbeat>> {
  const rows = await db.query<Heartbeat>({
    hot: true,
    text: `select node_id as "nodeId", seen_at as "seenAt", health, health_at as "healthAt", message, agent_version as "agentVersion"
             from fleet_heartbeats where node_id = any($1)`,
    values: [nodeIds],
  });
  return new Map(rows.map((row) => [row.nodeId, row]));
}

const KEY = "fleet/task-signing-key";

/**
 * The private key that signs what agents are asked to do, as PEM: one for all replicas, made by whoever comes first. The public
 * half is told to agents when they enrol, so that it never changes.
 */
export async function readSigningKey(db: Database, secrets: SecretStore, make: () => string): Promise<string> {
  const known = await secrets.get(db, KEY);
  if (known !== undefined) return known;
  return db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: "secret", id: KEY }]);
    const meanwhile = await secrets.get(tx, KEY);
    if (meanwhile !== undefined) return meanwhile;
    const made = make();
    await secrets.put(tx, KEY, made);
    return made;
  });
}

/** The runs that work on these things now. */
export async function activeRunsOn(db: Queryable, kind: string, ids: readonly string[]): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>({
    hot: true,
    text: `select id from runs where target_kind = $1 and target_id = any($2) and state in ('PENDING', 'RUNNING')`,
    values: [kind, ids],
  });
  return rows.map(({ id }) => id);
}
