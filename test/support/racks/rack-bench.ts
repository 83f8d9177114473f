import { recordChange } from "../../../src/store/lifecycle/changes.ts";
import { create } from "../../../src/store/lifecycle/create.ts";
import { announce } from "../../../src/store/lifecycle/journal.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { storeOf } from "../../../src/store/lifecycle/things.ts";
import * as work from "../../../src/store/lifecycle/work.ts";
import { listRacks, type RackRecord } from "../../../src/store/rack/racks.ts";
import { eventually } from "../eventually.ts";
import type { RunSurface } from "../run-bench.ts";

const AT = "2026-01-01T00:00:00Z";
const seen = (type: string, status: boolean) => ({ type, status, reason: "Seen", message: "", last_transition: AT });

/** A tray that answers, and that nobody uses; as a check from outside would find it. */
export const CHECKED = [seen("BMCReachable", true), seen("InCustomerCluster", false)];
export const DRAINED = seen("Drained", true);
export const IN_USE = [seen("BMCReachable", true), seen("InCustomerCluster", true)];

/** Racks of fake machines, without switches and shelves: what a site would put on record, and what its checks would find. */
export function rackBench({ db, deps, addMachine }: Pick<RunSurface, "db" | "deps"> & Partial<RunSurface>) {
  const wake = (id: string) =>
    db.transaction(async (tx) => {
      await work.wake(tx, [{ kind: "rack", id }]);
      await announce(tx);
    });
  const rack = async (id: string): Promise<RackRecord> => {
    const [found] = await listRacks(db, { ids: [id] });
    if (!found) throw new Error(`there is no rack ${id}`);
    return found;
  };
  const putOnRecord = async (id: string) => {
    await db.transaction(async (tx) => {
      await lockThings(tx, [{ kind: "rack", id }]);
      const store = storeOf(deps.stores, "rack");
      await create(tx, store, { id, row: { name: id, rack_profile_id: id }, actor: "test", ifMissing: true });
      await recordChange(tx, store, { id, type: "updated", actor: "test", set: { rack_profile_id: id } });
    });
    await wake(id);
  };
  return {
    rack,
    wake,
    /** As the first device that names the rack does, also after its deletion. */
    putOnRecord,
    /** Conditions are written by the loop that checks machines, and not by a pass. */
    async setConditions(machineId: string, conditions: readonly object[]) {
      await db.query("update machines set conditions = $2::jsonb, basis = basis + 1 where id = $1", [
        machineId,
        JSON.stringify(conditions),
      ]);
    },
    /** The rack and its trays `<id>-m1`, `<id>-m2`, …, all checked. */
    async addRack(id: string, count: number, conditions: readonly object[] = CHECKED): Promise<string[]> {
      const part = (n: number) => JSON.stringify({ count: n, slot_ids: [] });
      await db.query(
        `insert into rack_profiles (name, hardware_type, topology, class, compute, switches, power_shelves, created_by)
         values ($1, 'gb200', null, 'prod', $2::jsonb, $3::jsonb, $3::jsonb, 'test')`,
        [id, part(count), part(0)],
      );
      const trays = Array.from({ length: count }, (_, at) => `${id}-m${at + 1}`);
      for (const tray of trays) {
        await addMachine?.(tray, "fake");
        await db.query("update machines set rack = $2, conditions = $3::jsonb, basis = basis + 1 where id = $1", [
          tray,
          id,
          JSON.stringify(conditions),
        ]);
      }
      await putOnRecord(id);
      return trays;
    },
    until: (id: string, state: string) =>
      eventually(
        async () => {
          const found = await rack(id);
          return found.state.name === state && found;
        },
        { what: `rack ${id} is ${state}`, seen: async () => JSON.stringify(await rack(id), null, 1), within: 20_000 },
      ),
    /** Every state that the rack was in, each with its activity and phase. */
    async history(id: string): Promise<string[]> {
      const rows = await db.query<{ to: string; state: { activity?: string; phase?: string; run?: string } | null }>(
        `select to_state as "to", data -> 'state' as state from journal where kind = 'rack' and id = $1 and to_state is not null
          order by epoch, xid, seq`,
        [id],
      );
      return rows.map(({ to, state }) => (state?.activity ? `${to} ${state.activity} ${state.phase}` : to));
    },
  };
}
