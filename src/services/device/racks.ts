import { createAll } from "../../store/lifecycle/create.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";

const KIND = "rack";

/**
 * What is written about a device concerns its racks. A rack that is named for the first time is put on record; those that a device is
 * named in, or was, get a pass, since what they consist of may have changed. Nobody wakes them otherwise: a record that changes is no
 * row of a lifecycle.
 */
export async function mentionRacks(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  racks: { readonly named: readonly (string | null)[]; readonly left: readonly (string | null)[] },
): Promise<void> {
  const store = deps.stores.get(KIND);
  if (!store) return;
  const named = idsOf(racks.named);
  await createAll(
    tx,
    store,
    named.map((id) => ({ id, row: { name: id } })),
    { ...doneBy(caller), ifMissing: true },
  );
  await work.wake(
    tx,
    idsOf([...named, ...racks.left]).map((id) => ({ kind: KIND, id })),
  );
}

const idsOf = (racks: readonly (string | null)[]): string[] => [
  ...new Set(racks.filter((rack): rack is string => rack !== null)),
];
