import { AppError } from "../../kernel/errors.ts";
import { parseRackId } from "../../kernel/ids.ts";
import type { Rack } from "../../lifecycles/rack/rack.ts";
import { isActive } from "../../runs/model/run.ts";
import { recordChanges } from "../../store/lifecycle/changes.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf, type ThingKey } from "../../store/lifecycle/things.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { listRackNamers } from "../../store/rack/rack-namers.ts";
import { listRacks } from "../../store/rack/racks.ts";
import { listDescendants, listRuns } from "../../store/run/runs.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { deleteDevice, forceDeleteDevice } from "../device/deletion.ts";
import { refuseHeld } from "../device/held.ts";
import { cancelInTransaction } from "../run/cancel.ts";
import { findRack, RACK_KIND } from "./find-rack.ts";
import { terminateRackMaintenance } from "./maintenance.ts";

export interface DeleteRack {
  readonly id: string;
  /** Devices and expected devices that name the rack no longer do; otherwise the rack waits until they are gone. */
  readonly detach?: boolean;
}

/** Marks the rack for deletion. A maintenance that is under way is terminated first, and its end leads on. */
export async function deleteRack(deps: ServiceDeps, caller: Caller, { id, detach = false }: DeleteRack): Promise<void> {
  const rackId = parseRackId(id, "id");
  await findRack(deps.db, rackId, "id");
  if (detach) await deps.db.transaction((tx) => detachDevices(tx, deps, caller, rackId));
  await deleteDevice(deps, caller, { kind: RACK_KIND, id: rackId, field: "id" });
  await endItsRun(deps, caller, rackId);
}

const ATTEMPTS = 5;

/** The rack is marked, and so begins nothing new. A run that ends before it could be canceled leads to `deleting` as well. */
async function endItsRun(deps: ServiceDeps, caller: Caller, rackId: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const [rack] = await listRacks(deps.db, { ids: [rackId] });
    if (rack?.state.run === undefined) return;
    try {
      return await terminateRackMaintenance(deps, caller, rackId);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      // The run has ended, or the rack is gone: there is nothing left to cancel.
      if (error.kind === "failed_precondition" || error.kind === "not_found") return;
      // Its maintenance has ended, and its validation has begun.
      if (error.kind !== "conflict" || attempt === ATTEMPTS) throw error;
    }
  }
}

/**
 * Removes the record at once. Devices that still name the rack bring it back. The run that works on the rack is canceled in the same
 * transaction, with those of its runs that have not begun: they would lead devices into waiting for a rack that is gone.
 */
export const forceDeleteRack = (deps: ServiceDeps, caller: Caller, id: string): Promise<void> =>
  forceDeleteDevice(
    deps,
    caller,
    { kind: RACK_KIND, id, field: "id" },
    {
      find: (tx, rack) => findUnbegunRuns(tx, rack),
      async end(tx, runs) {
        for (const run of runs) await cancelInTransaction(tx, deps, caller, run.id);
      },
    },
  );

/** Its run, and what that has started and is still PENDING. What has begun is ended by the run. */
async function findUnbegunRuns(tx: Transaction, { state: { run } }: Pick<Rack, "state">): Promise<readonly ThingKey[]> {
  if (run === undefined) return [];
  const [own, started] = [await listRuns(tx, { ids: [run] }), await listDescendants(tx, run)];
  const ending = [...own.filter(({ phase }) => isActive(phase)), ...started.filter(({ phase }) => phase === "PENDING")];
  return ending.map(({ id }) => ({ kind: "run", id }));
}

/** Who names a rack, and in which column. An expected device that still did would bring the rack back. */
const NAMING = [
  { kind: "machine", column: "rack", isDevice: true },
  { kind: "power_shelf", column: "rack_id", isDevice: true },
  { kind: "switch", column: "rack_id", isDevice: true },
  { kind: "expected_power_shelf", column: "rack_id", isDevice: false },
  { kind: "expected_switch", column: "rack_id", isDevice: false },
] as const;

async function detachDevices(tx: Transaction, deps: ServiceDeps, caller: Caller, rackId: string): Promise<void> {
  for (const { kind, column, isDevice } of NAMING) {
    if (!deps.stores.has(kind)) continue;
    const store = storeOf(deps.stores, kind);
    const find = () => listRackNamers(tx, { table: store.table, column, rackId });
    const keys = (await find()).map((id) => ({ kind, id }));
    await lockThings(tx, keys);
    if (isDevice) await refuseHeld(tx, deps, keys, { action: "moved to another rack", field: "id" });
    const still = new Set(await find());
    const set = { [column]: null };
    const changes = keys
      .filter(({ id }) => still.has(id))
      .map(({ id }) => ({ id, type: "updated", ...doneBy(caller), set }));
    await recordChanges(tx, store, changes);
  }
}
