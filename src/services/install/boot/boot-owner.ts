import { isContradicted } from "../../../lifecycles/machine/boot-identity.ts";
import { absorbTwins, bootActorOf, findTwins, locksToAbsorb } from "../../../store/install/twins.ts";
import { lockThings } from "../../../store/lifecycle/locks.ts";
import { findMachinesByMac, listMacReporters } from "../../../store/machine/mac-owners.ts";
import { machineStore } from "../../../store/machine/machines.ts";
import { noteStrangeBoot } from "../../../store/machine/strange-boots.ts";
import type { Transaction } from "../../../store/postgres/database.ts";
import type { Caller } from "../../call/caller.ts";
import type { ServiceDeps } from "../../call/deps.ts";
import { doneBy } from "../../call/initiator.ts";
import type { BootRequest } from "./boot.ts";

interface BootOwner {
  /** Undefined: no machine on record has the address. */
  readonly owner?: string | undefined;
  /** Why it cannot be said which machine boots. */
  readonly problem?: string;
  /** The address is a machine's, and the hardware is not. */
  readonly isStrange?: true;
}

/**
 * The machine that boots. One that is on record twice, since it booted before its BMC reported the address, becomes one here. An address that
 * several BMCs report, and no owner gave, makes no third machine. Hardware that is not the machine's gets nothing of what is the machine's,
 * and changes nothing of it.
 */
export async function findBootOwner(
  tx: Transaction,
  deps: ServiceDeps,
  node: Caller,
  request: BootRequest,
): Promise<BootOwner> {
  const { mac } = request;
  const owner = (await findMachinesByMac(tx, [mac])).get(mac);
  const reporters = await listMacReporters(tx, mac);
  const [reporter] = reporters;
  if (owner === undefined && reporter !== undefined)
    return { problem: `${mac} is reported by the BMCs of several machines: ${reporters.slice(0, 3).join(", ")}` };
  if (owner !== undefined && (await isStrangeTo(tx, deps, owner, request))) return { isStrange: true };
  if (owner === undefined || reporter === undefined || owner === reporter) return { owner };
  const find = () => findTwins(tx, reporter, [mac]);
  const before = await find();
  if (before.length === 0) return { owner };
  if (await isStrangeTo(tx, deps, reporter, request)) return { isStrange: true };
  await lockThings(tx, locksToAbsorb(reporter, before));
  const twins = (await find()).filter((id) => before.includes(id)); // under the lock: somebody may have approved it
  await absorbTwins(tx, deps.stores, { machineId: reporter, twins, ...doneBy(node) });
  return { owner: (await findMachinesByMac(tx, [mac])).get(mac) };
}

async function isStrangeTo(
  tx: Transaction,
  deps: ServiceDeps,
  id: string,
  { mac, hardware, address }: BootRequest,
): Promise<boolean> {
  const [machine] = (await machineStore.load(tx, [id])).things;
  if (!machine) return false;
  const { serialNumber: serial = "", systemUuid = "" } = hardware;
  // What earlier boots said is not compared: whoever boots first from the address would shut out the machine itself.
  const known = { serials: [machine.spec.serial, machine.facts.serial], systemUuid: machine.facts.systemUuid };
  if (!isContradicted({ serial, systemUuid }, known)) return false;
  const boot = { mac, serial, systemUuid, address, actor: bootActorOf(mac) };
  await noteStrangeBoot(tx, deps.stores, machine, boot);
  return true;
}
