import { AppError } from "../../kernel/errors.ts";
import { parseRackId } from "../../kernel/ids.ts";
import { recordChanges } from "../../store/lifecycle/changes.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { listRackNamers } from "../../store/rack/rack-namers.ts";
import { listRacks } from "../../store/rack/racks.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { deleteDevice } from "../device/deletion.ts";
import { refuseHeld } from "../device/held.ts";
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
  const [rack] = await listRacks(deps.db, { ids: [rackId] });
  if (rack?.state.run === undefined) return;
  try {
    await terminateRackMaintenance(deps, caller, rackId);
  } catch (error) {
    // The run has just ended by itself: that leads to deleting as well.
    if (!(error instanceof AppError)) throw error;
  }
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
