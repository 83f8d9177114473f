import { z } from "zod";
import { type Duration, milliseconds } from "../../kernel/time/duration.ts";
import { CONDITION_TYPES } from "../../lifecycles/machine/conditions.ts";
import type { Misses } from "../../lifecycles/machine/observation.ts";
import { hasLiveEvents } from "../device/event-streams.ts";
import type { Queryable } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { toJsonText } from "../postgres/json-text.ts";

/** A machine to check, ours until the lease ends. `epoch` fences: the next claim has a higher one. */
export interface ClaimedCheck {
  readonly machineId: string;
  readonly epoch: number;
  readonly misses: Misses;
  /** How long ago the BMC was asked for its MAC addresses; null: never. */
  readonly macsAge: Duration | null;
  /** Its BMC reports events, and has reported none since it was read, which was not long ago. */
  readonly bmcRests: boolean;
  /** The rack that holds it; null: none does. */
  readonly rackAtWork: string | null;
}

export interface CheckRelease {
  readonly machineId: string;
  readonly epoch: number;
  readonly misses: Misses;
  /** When the next check is due. */
  readonly after: Duration;
  /** Whether the machine was really checked; else it was only released. */
  readonly checked: boolean;
  /** Whether the BMC has told its MAC addresses. */
  readonly macsRead?: boolean;
  /** Whether its BMC was read. */
  readonly bmcRead?: boolean;
}

const MACHINE = { kind: "machine" } as const;

const missesSchema = z.partialRecord(z.enum(CONDITION_TYPES), z.number().int().positive()).catch({});

interface ClaimedRow {
  readonly machine_id: string;
  readonly epoch: number;
  readonly misses: unknown;
  readonly macs_age: number | null;
  readonly bmc_rests: boolean;
  readonly rack_at_work: string | null;
}

/** A run that goes on after its rack has let go holds the machine on the rack's behalf, and is no rack at work. */
const RACK_AT_WORK = `(select c.holder_id from claims c
                 where c.thing_kind = 'machine' and c.thing_id = l.machine_id and c.holder_kind = 'rack'
                   and coalesce(c.granted_at, c.joined_at) is not null limit 1)`;

/**
 * Leases machines that are due, the longest due first. What others are claiming at the same moment is passed over, so that replicas
 * share the fleet without waiting for each other.
 */
export async function claimChecks(
  db: Queryable,
  options: {
    readonly owner: string;
    readonly limit: number;
    readonly leaseFor: Duration;
    /** How long the BMC of a machine need not be read while it reports events. Absent: it is read each time. */
    readonly bmcRestsFor?: Duration;
  },
): Promise<ClaimedCheck[]> {
  const { owner, limit, leaseFor, bmcRestsFor = 0 } = options;
  const rows = await db.query<ClaimedRow>(
    `with due as (
       select machine_id from condition_looks
        where due_at <= now() order by due_at limit ${Math.floor(limit)} for update skip locked)
     update condition_looks l
        set due_at = now() + $2 * interval '1 ms', claimed_at = now(), lease_owner = $1, epoch = l.epoch + 1
       from due where l.machine_id = due.machine_id
     returning l.machine_id, l.epoch, l.misses, (extract(epoch from now() - l.macs_read_at) * 1000)::float8 as macs_age,
               coalesce(l.bmc_read_at > now() - $3 * interval '1 ms' and l.bmc_read_at > coalesce(l.nudged_at, '-infinity')
                        and ${hasLiveEvents("machine", "l.machine_id")}, false) as bmc_rests,
               ${RACK_AT_WORK} as rack_at_work`,
    [owner, leaseFor, bmcRestsFor],
  );
  failPoint("condition-checks:claimed", rows.length > 0 ? [MACHINE] : []);
  return rows.map(({ machine_id, epoch, misses, macs_age, bmc_rests, rack_at_work }) => ({
    machineId: machine_id,
    epoch,
    misses: missesSchema.parse(misses),
    macsAge: macs_age === null ? null : milliseconds(Math.max(0, macs_age)),
    bmcRests: bmc_rests,
    rackAtWork: rack_at_work,
  }));
}

/**
 * Something happened to the machine: it is due at once, or as soon as the check that is under way is over. One machine a statement:
 * it waits for those who move many machines, and holds none that they wait for.
 */
export async function nudgeCheck(db: Queryable, machineId: string): Promise<void> {
  await db.query(
    `update condition_looks
        set nudged_at = now(), due_at = case when lease_owner is null then least(due_at, now()) else due_at end
      where machine_id = $1`,
    [machineId],
  );
}

/**
 * Releases machines. One that another replica has claimed since is theirs, and one whose row is locked at this moment is left to its
 * lease: waiting here for somebody who moves many machines, and waits for one of ours, would end in a deadlock.
 */
export async function releaseChecks(db: Queryable, releases: readonly CheckRelease[]): Promise<void> {
  if (releases.length === 0) return;
  await db.query(
    `with ours as (
       select l.machine_id, r.misses, r.after_ms, r.checked, r.macs_read, r.bmc_read from condition_looks l
         join unnest($1::text[], $2::bigint[], $3::jsonb[], $4::float8[], $5::boolean[], $6::boolean[], $7::boolean[])
              as r(machine_id, epoch, misses, after_ms, checked, macs_read, bmc_read) using (machine_id, epoch)
        where l.lease_owner is not null for update of l skip locked)
     update condition_looks l
        set due_at = now() + case when l.nudged_at >= l.claimed_at then 0 else r.after_ms end * interval '1 ms',
            lease_owner = null, misses = r.misses, bmc_read_at = case when r.bmc_read then l.claimed_at else l.bmc_read_at end,
            looked_at = case when r.checked then now() else l.looked_at end,
            macs_read_at = case when r.macs_read then now() else l.macs_read_at end
       from ours r where l.machine_id = r.machine_id`,
    [
      releases.map(({ machineId }) => machineId),
      releases.map(({ epoch }) => epoch),
      releases.map(({ misses }) => toJsonText({ ...misses })),
      releases.map(({ after }) => after),
      releases.map(({ checked }) => checked),
      releases.map(({ macsRead = false }) => macsRead),
      releases.map(({ bmcRead = false }) => bmcRead),
    ],
  );
  failPoint("condition-checks:released", [MACHINE]);
}

/** Those of the checks that no other replica has taken over. */
export async function heldChecks(
  db: Queryable,
  checks: readonly Pick<ClaimedCheck, "machineId" | "epoch">[],
): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ machine_id: string }>(
    `select l.machine_id from condition_looks l
       join unnest($1::text[], $2::bigint[]) as h(machine_id, epoch) using (machine_id, epoch)`,
    [checks.map(({ machineId }) => machineId), checks.map(({ epoch }) => epoch)],
  );
  return new Set(rows.map(({ machine_id }) => machine_id));
}

/** How long the most overdue machine has been waiting. */
export async function measureChecks(db: Queryable): Promise<{ readonly lagSeconds: number }> {
  const [row] = await db.query<{ lag: number }>(
    `select extract(epoch from now() - due_at)::float8 as lag from condition_looks order by due_at limit 1`,
  );
  return { lagSeconds: Math.max(0, row?.lag ?? 0) };
}
