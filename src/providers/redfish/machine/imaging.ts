import { DeviceFailure, isRefusal, isSilence } from "../../../capabilities/device-failure.ts";
import type { Imaging, InstallOrder } from "../../../capabilities/imaging.ts";
import type { Reset } from "../../../capabilities/reset.ts";
import { bmcFailure } from "../../transport/bmc-failure.ts";
import { nameOf } from "../../transport/bmc-gateway.ts";
import { mediumUrl } from "../../transport/medium-url.ts";
import { actionOffered } from "../action-offered.ts";
import { findManager } from "../manager.ts";
import { linkAt, listAt, membersOf, type Resource, textAt, valueAt } from "../resource.ts";
import { bootOverrideOf, clearNextBoot, setNextBoot } from "./boot.ts";
import type { Machines, OpenMachine } from "./machine.ts";

const INSERT = "#VirtualMedia.InsertMedia";
const EJECT = "#VirtualMedia.EjectMedia";
const OPTICAL = /^(?:cd|dvd)$/i;

/** Installing from virtual media: the machine boots once from a medium that its BMC fetches. */
export function createMachineImaging(machines: Machines, reset: Reset): Imaging {
  return {
    async prepare(target, order, call) {
      const machine = await machines.open(target, call);
      await insert(machine, await readDrive(machine), mediumUrl(order));
      await setNextBoot(machine, "cd");
    },

    start: (target, _order, call) => reset.resetPower(target, "forced", call),

    async readProgress(target, order, call) {
      const machine = await machines.open(target, call);
      const inserted = holds(await readDrive(machine), order);
      return { inserted, armed: inserted && bootOverrideOf(machine.system).source === "cd" };
    },

    async cleanUp(target, order, call) {
      const machine = await machines.open(target, call);
      const drive = await readDrive(machine);
      const isOurs = holds(drive, order);
      if (!isOurs && holdsSomething(drive)) return undefined;
      const notEjected = isOurs ? await failureOf(() => takeOut(machine, drive, order)) : undefined;
      // Who does not answer to the one does not answer to the other either: both are for the next try.
      if (notEjected !== undefined && isSilence(notEjected)) throw stillInserted(machine, notEjected, "may");
      const isSet = bootOverrideOf(machine.system).source === "cd";
      const notCleared = isSet ? await failureOf(() => clearNextBoot(machine)) : undefined;
      if (notEjected !== undefined)
        throw stillInserted(machine, notEjected, notCleared === undefined ? "by_order" : "does");
      if (notCleared !== undefined && !isRefusal(notCleared)) throw notCleared;
      return (
        notCleared && `the medium is ejected, but the BMC keeps the empty drive as boot source: ${notCleared.message}`
      );
    },
  };
}

/**
 * By the whole address where the BMC tells it; some show only the file's name, or hide the query, and then a medium that could
 * be ours is taken for ours: the machine belongs to this run alone.
 */
function holds(drive: Resource, order: InstallOrder): boolean {
  if (valueAt(drive, "Inserted") === false) return false;
  const image = textAt(drive, "Image");
  const wanted = mediumUrl(order);
  // Shows that there is one, and not which.
  if (image === undefined) return valueAt(drive, "Inserted") === true;
  if (image.includes("token=")) return image === wanted;
  return wanted.split("?")[0]?.endsWith(image.split("?")[0] ?? "") ?? false;
}

const holdsSomething = (drive: Resource): boolean =>
  valueAt(drive, "Inserted") !== false && (textAt(drive, "Image") !== undefined || valueAt(drive, "Inserted") === true);

async function insert(machine: OpenMachine, drive: Resource, url: string): Promise<void> {
  const { client, target, call } = machine;
  if (holdsSomething(drive) && textAt(drive, "Image") === url) return;
  if (holdsSomething(drive)) await eject(machine, drive);
  const path = actionOffered(drive, INSERT);
  if (path === undefined) throw cannotInsert(machine);
  await client.post(target, path, { Image: url, Inserted: true, WriteProtected: true }, call);
}

async function eject({ client, target, call }: OpenMachine, drive: Resource): Promise<void> {
  const path = actionOffered(drive, EJECT);
  if (path === undefined) {
    throw bmcFailure("unsupported", target, `${nameOf(target)}: this BMC offers no way to eject its virtual medium`);
  }
  await client.post(target, path, {}, call);
}

/** A BMC that accepts the command and keeps the medium has not ejected it. */
async function takeOut(machine: OpenMachine, drive: Resource, order: InstallOrder): Promise<void> {
  await eject(machine, drive);
  if (!holds(await readDrive(machine), order)) return;
  throw bmcFailure(
    "refused_by_device",
    machine.target,
    `${nameOf(machine.target)}: the BMC accepts the command to eject, and still shows the medium`,
    {
      disposition: "retry",
    },
  );
}

const INSTALLS_AGAIN = {
  does: "the medium is still inserted: the machine installs again at each boot",
  by_order:
    "the medium is still inserted: the machine installs again if its boot order tries that drive before its disk",
  may: "the medium may still be inserted: then the machine may install again at each boot",
} as const;

/** What a person must know of it first: whether the machine will install again. */
const stillInserted = (
  { target }: OpenMachine,
  { code, message, disposition, status, facts }: DeviceFailure,
  again: keyof typeof INSTALLS_AGAIN,
): DeviceFailure =>
  bmcFailure(code, target, `${INSTALLS_AGAIN[again]} (${message})`, {
    disposition,
    facts,
    ...(status !== undefined && { status }),
  });

/** Of the BMC; anything else ends the work. */
async function failureOf(work: () => Promise<void>): Promise<DeviceFailure | undefined> {
  try {
    await work();
  } catch (error) {
    if (error instanceof DeviceFailure) return error;
    throw error;
  }
}

/** The drive that can hold a CD, among the manager's, or the system's where newer firmware keeps them. */
async function readDrive(machine: OpenMachine): Promise<Resource> {
  const { client, target, call, places } = machine;
  const known = places.drive === undefined ? undefined : await client.find(target, places.drive, call);
  if (known !== undefined) return known;
  for (const owner of [machine.system, await findManager(machine, machine.system)]) {
    const collection = linkAt(owner, "VirtualMedia");
    if (collection === undefined) continue;
    for (const { path, resource } of membersOf(await client.find(target, collection, call)).slice(0, 8)) {
      const drive = resource ?? (await client.find(target, path, call));
      if (drive === undefined || !listAt(drive, "MediaTypes").some((type) => OPTICAL.test(String(type)))) continue;
      places.drive = path;
      return drive;
    }
  }
  throw cannotInsert(machine);
}

const cannotInsert = ({ target }: OpenMachine): DeviceFailure =>
  bmcFailure("unsupported", target, `${nameOf(target)}: this BMC has no virtual CD drive to insert media into`);
