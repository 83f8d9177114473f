import { randomUUID } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import { type MachineId, parseMachineId } from "../../kernel/ids.ts";
import type { Architecture, BootMode } from "../../lifecycles/install/install.ts";
import { loadInstalls } from "../../store/install/installs.ts";
import { create } from "../../store/lifecycle/create.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import { replaceIdentities } from "../../store/machine/identities.ts";
import { findMachinesByMac } from "../../store/machine/mac-owners.ts";
import { retryOnConflict, type Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { createHostReprovision, hostReprovisionKey } from "../host-reprovision/host-reprovisions.ts";
import { machineKey } from "../machine/machines.ts";
import { holdKnownGroup } from "./device-groups.ts";
import { INSTALL_KIND, installKey } from "./key.ts";

/** What is known of a node when it is put on record. */
export interface NewInstall {
  readonly mac: string;
  readonly arch: Architecture;
  readonly bootMode: BootMode;
  readonly groupId: string | null;
  readonly facts: Partial<Record<HardwareFact | "lastSeenAt", string>>;
  /** Nobody but the machine itself says that it is there. */
  readonly foundByBoot?: boolean;
}

export const HARDWARE_FACTS = ["hostname", "ipAddress", "vendor", "model", "serialNumber", "systemUuid"] as const;
export type HardwareFact = (typeof HARDWARE_FACTS)[number];

/**
 * Puts a node on record as discovered. A MAC address of the inventory attaches to its machine; an unknown one registers a machine.
 * A machine has at most one install: a second one is refused.
 */
export async function registerInstall(deps: ServiceDeps, caller: Caller, input: NewInstall): Promise<MachineId> {
  return retryOnConflict(() => deps.db.transaction((tx) => insertInstall(tx, deps, caller, input)));
}

export async function insertInstall(
  tx: Transaction,
  deps: Pick<ServiceDeps, "stores">,
  caller: Caller,
  { mac, arch, bootMode, groupId, facts, foundByBoot = false }: NewInstall,
): Promise<MachineId> {
  const id = await lockMachineOf(tx, deps, caller, mac);
  // After the locks: to hold a row takes the transaction's id.
  if (groupId !== null) await holdKnownGroup(tx, groupId);
  const [known] = (await loadInstalls(tx, [id])).things;
  if (known)
    throw new AppError("already_exists", `Node with MAC ${mac} already exists: it is ${id}`, { field: "mac_address" });
  await create(tx, storeOf(deps.stores, INSTALL_KIND), {
    id,
    ...doneBy(caller),
    row: { mac, arch, boot_mode: bootMode, group_id: groupId, found_by_boot: foundByBoot, facts: { ...facts } },
  });
  return id;
}

/** The machine that has the address, under its lock; registered if there is none. */
async function lockMachineOf(
  tx: Transaction,
  deps: Pick<ServiceDeps, "stores">,
  caller: Caller,
  mac: string,
): Promise<MachineId> {
  const ownerOf = async () => (await findMachinesByMac(tx, [mac])).get(mac);
  const expected = (await ownerOf()) ?? `m-${mac.replaceAll(":", "")}`;
  await lockThings(tx, [installKey(expected), machineKey(expected)]);
  // Asked again under the lock: another call may have registered it in the meantime.
  const owner = await ownerOf();
  if (owner === undefined) return registerForBoot(tx, deps, caller, expected, mac);
  if (owner !== expected) await lockThings(tx, [installKey(owner), machineKey(owner)]);
  return parseMachineId(owner, "id");
}

/** The id is taken where a machine with this address was retired: its record stays, and the new one gets another. */
async function registerForBoot(
  tx: Transaction,
  deps: Pick<ServiceDeps, "stores">,
  caller: Caller,
  wanted: string,
  mac: string,
): Promise<MachineId> {
  const row = { provider: "datacenter", macs: [mac] };
  for (const id of [wanted, `${wanted}-${randomUUID().slice(0, 8)}`].map((each) => parseMachineId(each, "id"))) {
    await lockThings(tx, [installKey(id), machineKey(id), hostReprovisionKey(id)]);
    const isNew = await create(tx, storeOf(deps.stores, "machine"), { id, row, ifMissing: true, ...doneBy(caller) });
    if (!isNew) continue;
    await createHostReprovision(tx, deps, caller, id);
    const [taken] = await replaceIdentities(tx, id, [{ kind: "mac", value: mac }]);
    if (!taken) return id;
    throw new AppError("conflict", `machine ${taken.owner} took the address ${mac} at the same moment; call again`);
  }
  throw new AppError("conflict", `no machine could be registered for ${mac}; call again`);
}
