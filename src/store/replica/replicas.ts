import { seconds } from "../../kernel/time/duration.ts";
import type { Queryable } from "../postgres/database.ts";
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
  /** How many things it works on now, by kind. */
  readonly working: Readonly<Record<string, number>>;
}

/** A replica that has been silent for so long is gone; its leases end by themselves. */
const GONE_AFTER = seconds(10) / 1_000;

/** Says that this replica is at work, and forgets those that were last seen a day ago. */
export async function noteReplica(
  db: Queryable,
  own: OwnReplica,
  { stopping }: { readonly stopping: boolean },
): Promise<void> {
  await db.execute(
    `with old as (delete from replicas where seen_at < now() - interval '1 day' and id <> $1)
     insert into replicas (id, host, version, commit, schema, stopping) values ($1, $2, $3, $4, $5, $6)
     on conflict (id) do update set seen_at = now(), stopping = excluded.stopping`,
    [own.id, own.host, own.version, own.commit, own.schema, stopping],
  );
  failPoint("replicas:noted");
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
     select r.id, r.host, r.version, r.commit, r.schema, r.started_at as "startedAt", r.seen_at as "seenAt", r.stopping,
            r.seen_at > now() - interval '${GONE_AFTER} seconds' as "isLiving", coalesce(w.working, '{}') as working
       from replicas r left join working w on w.lease_owner = r.id
      order by r.started_at, r.id`,
  );
