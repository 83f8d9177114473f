import { listStateHistories, type StateRecord } from "../../store/lifecycle/state-histories.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { checkIdList } from "../call/id-list.ts";
import { kindOfDevice } from "./device.ts";

export type { StateRecord } from "../../store/lifecycle/state-histories.ts";

/** A hundred histories of this length stay below the 4 MB that gRPC clients accept by default. */
const LONGEST_HISTORY = 250;

/** The latest states of each device, oldest first, also of devices that are gone. Ids without a history are left out. */
export async function findStateHistories(
  deps: ServiceDeps,
  kind: string,
  { ids, field }: { readonly ids: readonly string[]; readonly field: string },
): Promise<ReadonlyMap<string, readonly StateRecord[]>> {
  const { traits } = kindOfDevice(deps, kind);
  const checked = checkIdList(ids, { field, most: deps.maxFindByIds, parse: traits.parseId });
  return listStateHistories(deps.db, kind, checked, LONGEST_HISTORY);
}
