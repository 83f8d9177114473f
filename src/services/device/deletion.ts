import { isDeepStrictEqual } from "node:util";
import { followOrRefuse, type Move } from "../../kernel/decide.ts";
import { AppError, changedByAnother } from "../../kernel/errors.ts";
import type { Lifecycle, Thing } from "../../kernel/lifecycle.ts";
import type { DeviceDeletion } from "../../store/device/device.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { commitOrRefuse } from "../../store/lifecycle/commit/commit-or-refuse.ts";
import { withdrawPending } from "../../store/lifecycle/commit/end-requests.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { nameOf, type ThingKey } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { type DeviceName, findDevice, type NamedDevice, nameDevice, unknownDevice } from "./device.ts";
import { refuseHeld } from "./held.ts";

/** Marks the device, unless another works on it; the controller removes it as soon as its state allows. Asking again refreshes the mark. */
export async function deleteDevice(deps: ServiceDeps, caller: Caller, name: DeviceName): Promise<void> {
  const device = nameDevice(deps, name);
  deletionOf(device);
  const { key, store, traits } = device;
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [key]);
    await refuseHeld(tx, deps, [key], { action: "deleted", field: name.field });
    const known = await recordChange(tx, store, {
      id: key.id,
      type: "deletion_requested",
      ...doneBy(caller),
      set: { deleted_at: nowOf(deps) },
    });
    if (!known) throw unknownDevice(traits, key.id);
    // Deletion comes before all else that was requested: nobody will carry out what still waits.
    for (const field of Object.keys(store.requests))
      await withdrawPending(tx, store, { field, id: key.id, ...doneBy(caller) });
    await work.wake(tx, [key]);
  });
}

/** What ends together with a device that is removed by force. */
export interface EndsWith {
  /** What is locked together with the device. Under the locks it is asked again, and may name fewer things, but no others. */
  find(tx: Transaction, device: Thing): Promise<readonly ThingKey[]>;
  end(tx: Transaction, found: readonly ThingKey[]): Promise<void>;
}

/** Removes the record at once, whatever the device is doing; its history stays. */
export async function forceDeleteDevice(
  deps: ServiceDeps,
  caller: Caller,
  name: DeviceName,
  endsWith?: EndsWith,
): Promise<void> {
  const named = nameDevice(deps, name);
  const deletion = deletionOf(named);
  const { key, store } = named;
  const movesOf = (device: Thing) => deletion.moves?.(device) ?? [];
  const locksOf = (device: Thing): ThingKey[] => [
    key,
    ...(store.locksWhenGone?.(device) ?? []),
    ...movesOf(device).map(({ kind, id }) => ({ kind, id })),
  ];
  await deps.db.transaction(async (tx) => {
    const before = await findDevice(tx, named);
    const ending = (await endsWith?.find(tx, before)) ?? [];
    await lockThings(tx, [...locksOf(before), ...ending]);
    const device = await findDevice(tx, named);
    const still = (await endsWith?.find(tx, device)) ?? [];
    const locked = new Set(ending.map(nameOf));
    // What it would now touch besides may not be locked.
    if (!isDeepStrictEqual(locksOf(device), locksOf(before)) || still.some((each) => !locked.has(nameOf(each))))
      throw changedByAnother(`${named.traits.noun} ${key.id}`);
    const move = forcedMove(store.lifecycle, device);
    await commitOrRefuse(tx, deps.stores, [
      { kind: key.kind, thing: device, move, ...doneBy(caller), effects: movesOf(device) },
    ]);
    await endsWith?.end(tx, still);
  });
}

function deletionOf({ traits }: NamedDevice): DeviceDeletion {
  if (traits.deletion) return traits.deletion;
  throw new AppError("unsupported", `a ${traits.noun} cannot be deleted`);
}

/** Also out of a state that the lifecycle does not know: a damaged record has no other way out. */
function forcedMove(lifecycle: Lifecycle<Thing>, device: Thing): Move {
  const { name } = device.state;
  const standing = name in lifecycle.states ? device : { ...device, state: { name: lifecycle.initial } };
  const move = followOrRefuse(lifecycle, standing, { owner: "caller", name: "force_delete" });
  return { ...move, from: name, to: name };
}
