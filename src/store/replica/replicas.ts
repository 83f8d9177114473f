import { seconds } from "../../kernel/time/duration.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

export interface OwnReplica {
  readonly id: string;
  readonly host: string;
  readonly version: string;
  readonly commit: string;
  readonly schema: string;
}

export interface Replica extends OwnReplica {
  readonly startedAt: Date;
  readonly seenAt: Date;
  /** It hands its work over, and ends. */
  readonly stopping: boolean;
  /** It wrote its row a moment ago. */
  readonly isLiving: boolean;
  /** An operator has it take no work. */
  readonly draining: boolean;
  /** What an operator has set for a time. */
  readonly logLevel: string | null;
  readonly logLevelUntil: Date | null;
  /** How many things it works on now, by kind. */
  readonly working: Readonly<Record<string, number>>;
}

/** What operators want of a replica. */
export interface ReplicaOrders {
  readonly draining: boolean;
  /** Null: that of its configuration. */
  readonly logLevel: string | null;
}

/** A replica that has been silent for so long is gone; its leases end by themselves. */
const GONE_AFTER = seconds(10) / 1_000;

/** Says that this replica is at work, learns what is wanted of it, and forgets those that were last seen a day ago. */
export async function noteReplica(
  db: Queryable,
  own: OwnReplica,
  { stopping }: { readonly stopping: boolean },
): Promise<ReplicaOrders> {
  const [orders] = await db.query<ReplicaOrders>(
    `with old as (delete from replicas where seen_at < now() - interval '1 day' and id <> $1)
     insert into replicas (id, host, version, commit, schema, stopping) values ($1, $2, $3, $4, $5, $6)
     on conflict (id) do update set seen_at = now(), stopping = excluded.stopping
     returning draining, case when log_level_until > now() then log_level end as "logLevel"`,
    [own.id, own.host, own.version, own.commit, own.schema, stopping],
  );
  failPoint("replicas:noted");
  return orders ?? { draining: false, logLevel: null };
}

/** Held by who changes what is wanted of replicas, so that two callers do not drain the last two. */
export async function lockOrders(tx: Transaction): Promise<void> {
  await tx.execute("lock table replicas in share row exclusive mode");
}

export async function setDraining(tx: Transaction, ids: readonly string[], draining: boolean): Promise<void> {
  await tx.execute("update replicas set draining = $2 where id = any($1)", [ids, draining]);
}

export async function setLogLevel(
  tx: Transaction,
  ids: readonly string[],
  { level, seconds }: { readonly level: string | null; readonly seconds: number },
): Promise<void> {
  await tx.execute(
    `update replicas set log_level = $2::text, log_level_until = case when $2::text is not null then now() + $3 * interval '1 second' end
      where id = any($1)`,
    [ids, level, seconds],
  );
}

/** One that ended in good order need not be taken for lost. */
export async function forgetReplica(db: Queryable, id: string): Promise<void> {
  await db.execute("delete from replicas where id = $1", [id]);
}

/** The oldest first. */
export const listReplicas = (db: Queryable): Promise<Replica[]> =>
  db.query<Replica>(
    `with working as (
       select lease_owner, jsonb_object_agg(kind, things) as working from (
         select lease_owner, kind, count(*) as things from work
          where lease_owner is not null and lease_until > now() group by lease_owner, kind) as each
        group by lease_owner)
     select r.id, r.host, r.version, r.commit, r.schema, r.started_at as "startedAt", r.seen_at as "seenAt", r.stopping, r.draining,
            case when r.log_level_until > now() then r.log_level end as "logLevel", r.log_level_until as "logLevelUntil",
            r.seen_at > now() - interval '${GONE_AFTER} seconds' as "isLiving", coalesce(w.working, '{}') as working
       from replicas r left join working w on w.lease_owner = r.id
      order by r.started_at, r.id`,
  );
