import { namedList } from "../../kernel/named-list.ts";
import type { Rack } from "../../lifecycles/rack/rack.ts";
import type { Admission, Refusal } from "../lifecycle/admission.ts";
import type { Queryable } from "../postgres/database.ts";

const MOST_NAMED = 3;

/** Of a rack `t`: others are at it, and it follows by itself. */
export const AWAITS_TURN = "(coalesce(t.outcome -> 'cause' ->> 'code', '') = 'maintenance_limit')";

/** Racks that a maintenance works on; whether they were ready before. */
export interface RackAtWork {
  readonly id: string;
  readonly was_ready: boolean;
}

/** In the order in which they began. */
export const listRacksAtWork = (db: Queryable): Promise<RackAtWork[]> =>
  db.query<RackAtWork>({
    name: "racks.at_work",
    text: `select id, coalesce((facts ->> 'hasValidated')::boolean, false) as was_ready from racks
            where state in ('maintenance', 'validating') order by state_since, id`,
    values: [],
  });

/** Racks on which a maintenance failed that nobody had asked for, and which nobody has looked at since. */
export async function listRacksFailedByThemselves(db: Queryable): Promise<string[]> {
  const rows = await db.query<{ id: string }>({
    name: "racks.failed_by_themselves",
    text: `select id from racks where facts ->> 'failedByItself' = 'true' and deleted_at is null order by id`,
    values: [],
  });
  return rows.map(({ id }) => id);
}

/** Racks that wait to be admitted, the longest first. */
export async function listRacksToAdmit(db: Queryable, most: number | null): Promise<string[]> {
  const rows = await db.query<{ id: string }>({
    name: "racks.to_admit",
    text: `select id from racks where outcome -> 'cause' ->> 'code' in ('maintenance_limit', 'maintenance_stopped')
            order by outcome ->> 'since', id limit $1`,
    values: [most],
  });
  return rows.map(({ id }) => id);
}

/** How many racks wait, by why: what their passes wrote last. */
export const countRacksToAdmit = (db: Queryable): Promise<{ cause: string; racks: number }[]> =>
  db.query({
    name: "racks.count_to_admit",
    text: `select outcome -> 'cause' ->> 'code' as cause, count(*)::int as racks from racks
            where outcome -> 'cause' ->> 'code' in ('maintenance_limit', 'maintenance_stopped') group by 1`,
    values: [],
  });

/**
 * Maintenance that nobody asked for by name begins on so many racks at a time, and on none once it has failed on too many. What an
 * operator asks for begins in any case, and is counted.
 */
export const rackAdmission: Admission<Rack> = {
  asks: ({ facts: { workSet } }) => workSet?.admission !== undefined,
  async refuse(tx, racks) {
    const atWork = await listRacksAtWork(tx);
    const failed = await listRacksFailedByThemselves(tx);
    const refused = new Map<string, Refusal>();
    const begun = { true: 0, false: 0 };
    for (const { wasReady, admission, id } of racks.map(asked)) {
      const others = atWork.filter(({ was_ready }) => was_ready === wasReady).length + begun[`${wasReady}`];
      const why = stopped(admission, failed) ?? (others >= admission.atOnce ? full(admission) : undefined);
      if (why) refused.set(id, why);
      else begun[`${wasReady}`] += 1;
    }
    if ([...refused.values()].some(({ cause }) => cause.code === "maintenance_stopped")) await warnOnce(tx, failed);
    return refused;
  },
};

type Limits = NonNullable<NonNullable<Rack["facts"]["workSet"]>["admission"]>;

const asked = ({ id, facts: { workSet, hasValidated } }: Rack) => ({
  id,
  wasReady: hasValidated,
  admission: workSet?.admission as Limits,
});

/** Without the names of those at work: they change all the time, and what is written of every rack that waits would with them. */
const full = ({ limit, atOnce }: Limits): Refusal => ({
  reason: `waiting for its turn: ${atOnce === 1 ? "one rack is" : `${atOnce} racks are`} in maintenance, as many as ${limit} allows`,
  cause: { code: "maintenance_limit", facts: { name: limit } },
});

function stopped({ stopAfter }: Limits, failed: readonly string[]): Refusal | undefined {
  if (stopAfter === 0 || failed.length < stopAfter) return undefined;
  const which = `${failed.length === 1 ? "rack" : "racks"} ${namedList(failed, MOST_NAMED)}`;
  return {
    reason: `maintenance does not begin by itself: it failed on ${which}, and rack.stop_after_failures is ${stopAfter}`,
    cause: { code: "maintenance_stopped", facts: { name: failed[0] ?? "" } },
  };
}

/** One line for the site, and not one a rack: those say that they wait. */
async function warnOnce(tx: Parameters<Admission["refuse"]>[0], failed: readonly string[]): Promise<void> {
  const waiting = await countRacksToAdmit(tx);
  if (waiting.some(({ cause }) => cause === "maintenance_stopped")) return;
  tx.logWhenCommitted(
    { failures: failed.length, racks: failed.slice(0, MOST_NAMED) },
    "maintenance of racks has failed too often: none begins by itself until they are mended, or `millwright rack maintenance resume`",
    "warn",
  );
}
