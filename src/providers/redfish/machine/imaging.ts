import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import { type DeviceFailure, failureOf, isRefusal, isSilence } from "../../../capabilities/device-failure.ts";
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
    async checkSeed(target, call) {
      seedDriveOf(await readDrives(await machines.open(target, call), 2), target);
    },

    async prepare(target, order, call) {
      const machine = await machines.open(target, call);
      const drives = await readDrives(machine, drivesFor(order));
      if (order.seed !== undefined) await insertSeed(machine, seedDriveOf(drives, target), order.seed.url);
      if (order.hasSeedInside) await insertSeed(machine, drives[0], order.location);
      else await insert(machine, drives[0], mediumUrl(order));
      await setNextBoot(machine, "cd");
    },

    start: (target, _order, call) => reset.resetPower(target, "forced", call),

    async readProgress(target, order, call) {
      const machine = await machines.open(target, call);
      const inserted = areOurs(await readDrives(machine, drivesFor(order)), order);
      return { inserted, armed: inserted && bootOverrideOf(machine.system).source === "cd" };
    },

    async cleanUp(target, order, call) {
      const machine = await machines.open(target, call);
      const drives = await readDrives(machine, drivesFor(order));
      const [main, seed] = drives;
      const isOurs = holds(main, mediumUrl(order)) && !holdsAnotherSeed(seed, order);
      if (!isOurs && holdsSomething(main)) return undefined;
      const notEjected = isOurs ? await failureOf(() => takeMainOut(machine, main, order)) : undefined;
      // Who does not answer to the one does not answer to the other either: both are for the next try.
      if (notEjected !== undefined && isSilence(notEjected)) throw stillInserted(machine, notEjected, "may");
      const seedStays = await failureOf(() => takeSeedOut(machine, seed, order));
      const isSet = bootOverrideOf(machine.system).source === "cd";
      const notCleared = isSet ? await failureOf(() => clearNextBoot(machine)) : undefined;
      if (notEjected !== undefined)
        throw stillInserted(machine, notEjected, notCleared === undefined ? "by_order" : "does");
      if (seedStays !== undefined) throw seedStays;
      if (notCleared !== undefined && !isRefusal(notCleared)) throw notCleared;
      return (
        notCleared && `the medium is ejected, but the BMC keeps the empty drive as boot source: ${notCleared.message}`
      );
    },
  };
}

/** A medium that is installed from, and perhaps one that says what to install. */
type Drives = readonly [main: Resource, seed?: Resource];

const drivesFor = ({ seed }: InstallOrder): 1 | 2 => (seed === undefined ? 1 : 2);

const areOurs = ([main, seed]: Drives, order: InstallOrder): boolean =>
  holds(main, mediumUrl(order)) && (order.seed === undefined || (seed !== undefined && holds(seed, order.seed.url)));

/** Orders of one image have the same medium: the seed tells whose it is. */
const holdsAnotherSeed = (drive: Resource | undefined, { seed }: InstallOrder): boolean =>
  seed !== undefined && drive !== undefined && holdsSomething(drive) && !holds(drive, seed.url);

/** What a BMC says of a medium with a seed in it may be the way to it. */
async function takeMainOut(machine: OpenMachine, drive: Resource, order: InstallOrder): Promise<void> {
  const url = mediumUrl(order);
  const failure = await failureOf(() => takeOut(machine, drive, url));
  if (failure === undefined) return;
  throw order.hasSeedInside ? failureOfSeed(machine, failure, withoutSeed(failure, url)) : failure;
}

async function takeSeedOut(machine: OpenMachine, drive: Resource | undefined, { seed }: InstallOrder): Promise<void> {
  if (seed === undefined || drive === undefined || !holds(drive, seed.url)) return;
  const failure = await failureOf(() => takeOut(machine, drive, seed.url));
  if (failure === undefined) return;
  const shown = withoutSeed(failure, seed.url);
  throw failureOfSeed(machine, failure, `the medium with the seed is still inserted (${shown})`);
}

function seedDriveOf([, seed]: Drives, target: BmcTarget): Resource {
  if (seed !== undefined) return seed;
  throw bmcFailure(
    "unsupported",
    target,
    `${nameOf(target)}: this BMC has one virtual drive, and the image reads its seed from a second medium: install it over the network (kind netboot), or declare with seed_on where else its installer looks`,
  );
}

async function insertSeed(machine: OpenMachine, drive: Resource, url: string): Promise<void> {
  const failure = await failureOf(() => insert(machine, drive, url));
  if (failure === undefined) return;
  throw failureOfSeed(machine, failure, `the medium with the seed was not inserted: ${withoutSeed(failure, url)}`);
}

/** A BMC that repeats the address in its answer must not show it to everybody: it is the way to the seed. */
const withoutSeed = ({ message }: DeviceFailure, url: string): string =>
  message
    .replaceAll(url, "(the seed)")
    .replaceAll(new URL(url).pathname, "(the seed)")
    .replaceAll(/[0-9a-f]{64}/gi, "***");

const failureOfSeed = (
  { target }: OpenMachine,
  { code, disposition, status, facts }: DeviceFailure,
  message: string,
): DeviceFailure => bmcFailure(code, target, message, { disposition, facts, ...(status !== undefined && { status }) });

/**
 * By the whole address where the BMC tells it; some show only the file's name, or hide the query, and then a medium that could
 * be ours is taken for ours: the machine belongs to this run alone.
 */
function holds(drive: Resource, wanted: string): boolean {
  if (valueAt(drive, "Inserted") === false) return false;
  const image = textAt(drive, "Image");
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
  const failure = await failureOf(async () => {
    await client.post(target, path, { Image: url, Inserted: true, WriteProtected: true }, call);
  });
  if (failure !== undefined) throw await whetherInserted(machine, drive, url, failure);
}

/**
 * A BMC that cannot download a medium answers with an error of its own, which says nothing of whether it obeyed. Where the drive is empty
 * it did not: the attempt has failed, with the BMC's words, and is not waited for.
 */
async function whetherInserted(
  { client, target, call }: OpenMachine,
  drive: Resource,
  url: string,
  failure: DeviceFailure,
): Promise<DeviceFailure> {
  const path = textAt(drive, "@odata.id");
  if (failure.family !== "busy" || failure.status === undefined || path === undefined) return failure;
  const now = await client.find(target, path, call).catch(() => undefined);
  if (now === undefined || holds(now, url)) return failure;
  const { status, facts, message } = failure;
  return bmcFailure("refused_by_device", target, message, { disposition: "retry", status, facts });
}

async function eject({ client, target, call }: OpenMachine, drive: Resource): Promise<void> {
  const path = actionOffered(drive, EJECT);
  if (path === undefined) {
    throw bmcFailure("unsupported", target, `${nameOf(target)}: this BMC offers no way to eject its virtual medium`);
  }
  await client.post(target, path, {}, call);
}

/** A BMC that accepts the command and keeps the medium has not ejected it. */
async function takeOut(machine: OpenMachine, drive: Resource, url: string): Promise<void> {
  await eject(machine, drive);
  const path = textAt(drive, "@odata.id");
  const now = path === undefined ? undefined : await machine.client.find(machine.target, path, machine.call);
  if (now === undefined || !holds(now, url)) return;
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

/**
 * The drives that media can be inserted into, the one that can hold a CD first: among the manager's, or the system's where newer firmware
 * keeps them. As many as are asked for, or as there are.
 */
async function readDrives(machine: OpenMachine, wanted: 1 | 2): Promise<Drives> {
  const { client, target, call, places } = machine;
  // One that lacks a drive may have it by now.
  const areKnown = places.drives !== undefined && places.drives.length >= wanted;
  if (!areKnown) places.drives = undefined;
  places.drives ??= await findDrives(machine);
  const found: Resource[] = [];
  for (const path of places.drives.slice(0, wanted)) {
    const drive = await client.find(target, path, call);
    if (drive !== undefined) found.push({ "@odata.id": path, ...drive });
  }
  const [main, seed] = found;
  if (main !== undefined && found.length === Math.min(wanted, places.drives.length))
    return seed === undefined ? [main] : [main, seed];
  places.drives = undefined; // another firmware has them elsewhere
  if (areKnown) return readDrives(machine, wanted);
  throw cannotInsert(machine);
}

/** Only of one owner: drives that a system and its manager both list are the same. */
async function findDrives(machine: OpenMachine): Promise<readonly string[]> {
  const { client, target, call } = machine;
  for (const owner of [machine.system, await findManager(machine, machine.system)]) {
    const collection = linkAt(owner, "VirtualMedia");
    if (collection === undefined) continue;
    const drives: { readonly path: string; readonly isOptical: boolean }[] = [];
    for (const { path, resource } of membersOf(await client.find(target, collection, call)).slice(0, 8)) {
      const drive = resource ?? (await client.find(target, path, call));
      const isOptical = listAt(drive, "MediaTypes").some((type) => OPTICAL.test(String(type)));
      // A drive for CDs without the action is told to be one: what is missing is then said by its name.
      if (isOptical || actionOffered(drive, INSERT) !== undefined) drives.push({ path, isOptical });
    }
    const ordered = [...drives.filter(({ isOptical }) => isOptical), ...drives.filter(({ isOptical }) => !isOptical)];
    if (ordered[0]?.isOptical) return ordered.map(({ path }) => path);
  }
  throw cannotInsert(machine);
}

const cannotInsert = ({ target }: OpenMachine): DeviceFailure =>
  bmcFailure("unsupported", target, `${nameOf(target)}: this BMC has no virtual CD drive to insert media into`);
