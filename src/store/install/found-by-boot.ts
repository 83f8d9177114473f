import type { Duration } from "../../kernel/time/duration.ts";
import { hostReprovisionLifecycle } from "../../lifecycles/host-reprovision/lifecycle.ts";
import { installLifecycle } from "../../lifecycles/install/lifecycle.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import { lockThings } from "../lifecycle/locks.ts";
import type { ThingStores } from "../lifecycle/things.ts";
import { applyVerb } from "../lifecycle/verbs.ts";
import type { Database, Queryable } from "../postgres/database.ts";

/** Of a machine `m` and its install `i`: nobody has approved it, says anything of it, or works on it. */
export const NOBODY_S = `m.state = 'FACTORY_READY' and i.state = 'discovered' and m.active_run_id is null and m.labels = '{}'
        and coalesce(m.bmc_endpoint, m.ssh_endpoint, m.serial, m.rack, m.slot, m.location, m.customer_id, m.target_cluster) is null
        and not exists (select 1 from claims c where c.thing_kind = '${machineLifecycle.kind}' and c.thing_id = m.id)`;

/** Nor has anybody looked at it: what people have given a workflow, a tag or a name, or have run something on, stays. */
const NOTHING_REFERS = `i.found_by_boot and ${NOBODY_S}
        and i.workflow_id is null and i.tags = '{}' and m.last_run_id is null
        and not exists (select 1 from fleet_nodes f where f.machine_id = m.id)
        and not exists (select 1 from installs r where r.state = 'migrating' and r.state_data ->> 'replacement' = i.id)
        and not exists (select 1 from machine_seen_macs s where s.mac = i.mac)`;
const UNSEEN = `coalesce((i.facts ->> 'lastSeenAt')::timestamptz, i.created_at) < now() - $2 * interval '1 ms'`;

/** Nodes that a boot has put on record and nobody has approved; at most so many are counted. */
export async function countFoundByBoot(db: Queryable, most: number): Promise<number> {
  const [row] = await db.query<{ count: number }>({
    name: "installs.count_found_by_boot",
    text: `select count(*)::int as count from (
             select from installs where found_by_boot and state = 'discovered' limit $1) found`,
    values: [most],
  });
  return row?.count ?? 0;
}

/** The install first, since it is of the machine. */
const KINDS = [installLifecycle, hostReprovisionLifecycle, machineLifecycle].map(({ kind }) => kind);

/** Forgets machines that only a boot has put on record, that did not boot again for so long, and that nothing refers to. Returns how many. */
export async function forgetFoundByBoot(
  db: Database,
  stores: ThingStores,
  { unseenFor, most }: { readonly unseenFor: Duration; readonly most: number },
): Promise<number> {
  const find = (tx: Queryable, ids: readonly string[] | null) =>
    tx.query<{ id: string }>(
      `select i.id from installs i join machines m on m.id = i.id
        where ${NOTHING_REFERS} and ${UNSEEN} and ($1::text[] is null or i.id = any($1)) order by i.id limit ${most}`,
      [ids, unseenFor],
    );
  let forgotten = 0;
  for (const { id } of await find(db, null)) {
    await db.transaction(async (tx) => {
      await lockThings(
        tx,
        KINDS.map((kind) => ({ kind, id })),
      );
      // Under the locks: it may have booted, or been approved.
      if ((await find(tx, [id])).length === 0) return;
      const message = "it did not boot again, and nobody has approved it";
      for (const kind of KINDS)
        await applyVerb(tx, stores, { kind, id, owner: "other", name: "expired", actor: "retention", message });
      forgotten += 1;
    });
  }
  return forgotten;
}
