import { createAll } from "../../store/lifecycle/create.ts";
import type { ThingKey } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";

const KIND = "rack";

type RackIds = readonly (string | null)[];

/** What to lock, together with the devices, before racks are mentioned; each rack once. */
export const rackKeys = (racks: RackIds): ThingKey[] =>
  [...new Set(racks.filter((rack) => rack !== null))].map((id) => ({ kind: KIND, id }));

/**
 * What is written about a device concerns its racks. A rack that is named for the first time is put on record; those that a device is
 * named in, or was, get a pass, since what they consist of may have changed. Nobody wakes them otherwise: a record that changes is no
 * row of a lifecycle. The caller holds the locks of the racks that are named.
 */
export async function mentionRacks(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  { named, left }: { readonly named: RackIds; readonly left: RackIds },
): Promise<void> {
  const store = deps.stores.get(KIND);
  if (!store) return;
  const racks = rackKeys(named).map(({ id }) => ({ id, row: { name: id } }));
  await createAll(tx, store, racks, { ...doneBy(caller), ifMissing: true });
  await work.wake(tx, rackKeys([...named, ...left]));
}
