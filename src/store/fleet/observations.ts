import type { MaasMachine, ObservedMaasState } from "../../capabilities/fleet/maas-machine.ts";
import type { Drift, DriftReason } from "../../lifecycles/fleet-node/drift.ts";
import type { FleetNodeState } from "../../lifecycles/fleet-node/lifecycle.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { JOB_STATE } from "../run/job-state-sql.ts";
import { REMOVED_ARE_WATCHED } from "./site-watches.ts";

/** What MAAS showed last of a node's machine. */
export interface FleetObservation {
  readonly nodeId: string;
  readonly systemId: string;
  readonly observed: ObservedMaasState;
  /** MAAS's own words; empty: it has no such machine. */
  readonly statusName: string;
  readonly power: MaasMachine["power"];
  readonly verdict: Drift["is"];
  readonly drift: DriftReason | null;
  /** Since when it has been so. */
  readonly since: Date;
  /** When MAAS last said so. */
  readonly seenAt: Date;
  /** Why MAAS says nothing now; null: it does. */
  readonly failure: string | null;
}

export async function findObservations(
  db: Queryable,
  nodeIds: readonly string[],
): Promise<ReadonlyMap<string, FleetObservation>> {
  const rows = await db.query<FleetObservation>(
    `select o.node_id as "nodeId", o.system_id as "systemId", o.observed, o.status_name as "statusName", o.power, o.verdict, o.drift,
            o.since, greatest(o.since, w.listed_at) as "seenAt", w.failure
       from fleet_observations o left join fleet_site_watches w using (site) where o.node_id = any($1)`,
    [nodeIds],
  );
  return new Map(rows.map((row) => [row.nodeId, row]));
}

/** A node that is bound to a machine of MAAS, with what there is to compare that machine with. */
export interface WatchedNode {
  readonly id: string;
  readonly systemId: string;
  readonly state: FleetNodeState;
  readonly basis: number;
  /** Its latest job's latest run, and whether that is under way; null: it has had none. */
  readonly lastRun: string | null;
  readonly hasActiveRun: boolean;
  /** Of an enrolling node whose latest job failed and may be retried: where it failed; null otherwise. */
  readonly failedStage: string | null;
  /** What is known of its serial number, from whoever told it first; null: nothing. */
  readonly serial: string | null;
  /** What is on record; null: nothing yet. */
  readonly known:
    | (Pick<FleetObservation, "systemId" | "observed" | "statusName" | "power" | "verdict" | "drift"> & {
        /** The latest job at that time, where it had ended; null: it had not, or nobody wrote it down. */
        readonly idleRun: string | null;
      })
    | null;
}

interface WatchedRow extends Omit<WatchedNode, "known"> {
  readonly known_system_id: string | null;
  readonly observed: ObservedMaasState;
  readonly status_name: string;
  readonly power: MaasMachine["power"];
  readonly verdict: Drift["is"];
  readonly drift: DriftReason | null;
  readonly idle_run: string | null;
}

const WATCHED = `select n.id, n.facts ->> 'systemId' as "systemId", n.state, n.basis, r.id as "lastRun",
       coalesce(r.state in ('PENDING', 'RUNNING'), false) as "hasActiveRun",
       case when n.state = 'enrolling' and r.job_state = 'failed_retryable' then
         jsonb_path_query_array(r.facts, '$.steps[*] ? (@.state == "FAILED").name') ->> -1 end as "failedStage",
       coalesce(m.serial, m.facts ->> 'serial', o.serial) as serial,
       o.system_id as known_system_id, o.observed, o.status_name, o.power, o.verdict, o.drift, o.idle_run
  from fleet_nodes n
  left join machines m on m.id = n.machine_id
  left join fleet_observations o on o.node_id = n.id
  left join lateral (select r.id, r.state, r.job_state, r.facts from runs r where r.target_kind = 'fleet_node' and r.target_id = n.id
                      order by r.created_at desc, r.id desc limit 1) r on true`;

const watched = ({
  known_system_id,
  observed,
  status_name,
  power,
  verdict,
  drift,
  idle_run,
  ...node
}: WatchedRow): WatchedNode => ({
  ...node,
  known:
    known_system_id === null
      ? null
      : { systemId: known_system_id, observed, statusName: status_name, power, verdict, drift, idleRun: idle_run },
});

/** One machine is one node's: where a removed one was onboarded again, the machine is the new node's. */
export async function listWatchedNodes(db: Queryable, site: string): Promise<WatchedNode[]> {
  const rows = await db.query<WatchedRow>({
    name: "fleet_observations.watched",
    text: `${WATCHED} where n.site = $1 and n.facts ->> 'systemId' is not null
             and (n.state <> 'deleted' or n.state_since > now() - ${REMOVED_ARE_WATCHED})`,
    values: [site],
  });
  const live = new Set(rows.filter(({ state }) => state !== "deleted").map(({ systemId }) => systemId));
  return rows.filter(({ state, systemId }) => state !== "deleted" || !live.has(systemId)).map(watched);
}

/** Of these nodes, those that are as they were when they were compared: neither they nor a job of theirs has moved since. */
export async function listUnchanged(db: Queryable, nodes: readonly WatchedNode[]): Promise<ReadonlySet<string>> {
  const rows = await db.query<WatchedRow>(`${WATCHED} where n.id = any($1)`, [nodes.map(({ id }) => id)]);
  const now = new Map(rows.map((row) => [row.id, row]));
  const isSame = ({ id, basis, lastRun, hasActiveRun }: WatchedNode) => {
    const present = now.get(id);
    return present?.basis === basis && present.lastRun === lastRun && present.hasActiveRun === hasActiveRun;
  };
  return new Set(nodes.filter(isSame).map(({ id }) => id));
}

export interface NewObservation {
  readonly nodeId: string;
  readonly systemId: string;
  readonly observed: ObservedMaasState;
  /** Undefined: MAAS has no such machine. */
  readonly machine: MaasMachine | undefined;
  readonly drift: Drift;
  /** The latest job of the node, where it has ended; null: one is under way, or there was none. */
  readonly idleRun: string | null;
}

/** What has changed, many at once; the caller holds the site. */
export async function putObservations(
  tx: Transaction,
  site: string,
  observations: readonly NewObservation[],
): Promise<void> {
  if (observations.length === 0) return;
  const of = <T>(part: (one: NewObservation) => T) => observations.map(part);
  await tx.execute({
    name: "fleet_observations.put",
    text: `insert into fleet_observations as o (node_id, site, system_id, observed, status, status_name, power, serial, verdict, drift, idle_run)
     select u.node_id, $1, u.system_id, u.observed, u.status, u.status_name, u.power, u.serial, u.verdict, u.drift, u.idle_run
       from unnest($2::text[], $3::text[], $4::text[], $5::int[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[])
            as u(node_id, system_id, observed, status, status_name, power, serial, verdict, drift, idle_run)
     on conflict (node_id) do update set site = excluded.site, system_id = excluded.system_id, status = excluded.status,
       status_name = excluded.status_name, power = excluded.power, verdict = excluded.verdict, drift = excluded.drift, idle_run = excluded.idle_run,
       serial = case when o.system_id = excluded.system_id then coalesce(o.serial, excluded.serial) else excluded.serial end,
       observed = excluded.observed,
       since = case when o.system_id = excluded.system_id and o.observed = excluded.observed and o.drift is not distinct from excluded.drift
                    then o.since else now() end`,
    values: [
      site,
      of(({ nodeId }) => nodeId),
      of(({ systemId }) => systemId),
      of(({ observed }) => observed),
      of(({ machine }) => machine?.status ?? null),
      of(({ machine }) => machine?.statusName ?? ""),
      of(({ machine }) => machine?.power ?? "unknown"),
      of(({ machine }) => machine?.serial ?? null),
      of(({ drift }) => drift.is),
      of(({ drift }) => ("reason" in drift ? drift.reason : null)),
      of(({ idleRun }) => idleRun),
    ],
  });
  failPoint("fleet-observations:written");
}

/** Nodes by what is wrong with their machines in MAAS; removed ones that are watched no more are left out. */
export async function countDrift(db: Queryable): Promise<{ readonly drift: DriftReason; readonly nodes: number }[]> {
  return db.query<{ drift: DriftReason; nodes: number }>(
    `select o.drift, count(*)::int as nodes from fleet_observations o join fleet_nodes n on n.id = o.node_id
      where o.drift is not null and (n.state <> 'deleted' or n.state_since > now() - ${REMOVED_ARE_WATCHED}) group by o.drift`,
  );
}

/** Nodes by the state of the latest job of each workflow. */
export async function countFleetJobs(
  db: Queryable,
): Promise<{ readonly workflow: string; readonly state: string; readonly nodes: number }[]> {
  return db.query<{ workflow: string; state: string; nodes: number }>(
    `select t.plan ->> 'workflow' as workflow, ${JOB_STATE} as state, count(*)::int as nodes
       from fleet_nodes n join runs t on t.target_kind = 'fleet_node' and t.target_id = n.id
      where n.state <> 'deleted' and t.parent_run_id is null and t.next_run_id is null
        and not exists (select 1 from runs later where later.target_kind = 'fleet_node' and later.target_id = n.id
                           and later.next_run_id is null and later.plan ->> 'workflow' = t.plan ->> 'workflow'
                           and (later.created_at, later.id) > (t.created_at, t.id))
      group by 1, 2`,
  );
}
