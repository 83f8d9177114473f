import type { DeviceFailure } from "../../../capabilities/device-failure.ts";
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
      if (!holds(drive, order)) return;
      // The medium last: by it whoever comes again knows that there is something to clean up.
      if (bootOverrideOf(machine.system).source === "cd") await clearNextBoot(machine);
      await eject(machine, drive);
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
  if (image === undefined) return false;
  if (image.includes("token=")) return image === wanted;
  return wanted.split("?")[0]?.endsWith(image.split("?")[0] ?? "") ?? false;
}

async function insert(machine: OpenMachine, drive: Resource, url: string): Promise<void> {
  const { client, target, call } = machine;
  const holdsSomething = valueAt(drive, "Inserted") !== false && textAt(drive, "Image") !== undefined;
  if (holdsSomething && textAt(drive, "Image") === url) return;
  if (holdsSomething) await eject(machine, drive);
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
