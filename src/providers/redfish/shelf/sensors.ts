import type { DeviceHealth, DeviceLogEntry, SensorReading, Sensors } from "../../../capabilities/sensors.ts";
import { findManager } from "../manager.ts";
import { healthAt, isLocalPath, linkAt, listAt, membersOf, numberAt, type Resource, textAt } from "../resource.ts";
import { readEach, type Shelf, type Shelves } from "./shelf.ts";

const MOST_SENSORS = 64;
/** Entries come oldest first, page by page; a log longer than this is read as far as this. */
const MOST_LOG_PAGES = 20;

export function createSensors(shelves: Shelves): Sensors {
  return {
    async readHealth(target, call): Promise<DeviceHealth> {
      const shelf = await shelves.open(target, call);
      const { chassis } = shelf;
      const status = healthAt(chassis, "Status", "HealthRollup") ?? healthAt(chassis, "Status", "Health") ?? "unknown";
      return { status, readings: await readSensors(shelf) };
    },

    async readLog(target, call, { limit }): Promise<readonly DeviceLogEntry[]> {
      const shelf = await shelves.open(target, call);
      const entries = await findEntries(shelf);
      if (entries === undefined) return [];
      const newest: DeviceLogEntry[] = [];
      let page: string | undefined = entries;
      for (let pages = 0; page !== undefined && pages < MOST_LOG_PAGES; pages += 1) {
        const collection: Resource | undefined = await shelf.client.find(target, page, call);
        newest.push(...listAt(collection, "Members").flatMap(describeEntry));
        newest.splice(0, newest.length - Math.max(limit, 0));
        const next: string | undefined = textAt(collection, "Members@odata.nextLink");
        page = next !== undefined && isLocalPath(next) ? next : undefined;
      }
      return newest.reverse();
    },
  };
}

async function readSensors(shelf: Shelf): Promise<readonly SensorReading[]> {
  const link = linkAt(shelf.chassis, "Sensors");
  if (link === undefined) return [];
  const members = membersOf(await shelf.client.find(shelf.target, link, shelf.call)).slice(0, MOST_SENSORS);
  const unread = members.filter(({ resource }) => resource === undefined).map(({ path }) => path);
  const sensors = [...members.map(({ resource }) => resource), ...(await readEach(shelf, unread))];
  return sensors.flatMap(describeSensor);
}

function describeSensor(sensor: Resource | undefined): readonly SensorReading[] {
  const name = textAt(sensor, "Name") ?? textAt(sensor, "Id");
  const value = numberAt(sensor, "Reading");
  // A sensor that is there but measures nothing now writes null.
  return name === undefined || value === undefined ? [] : [{ name, value, unit: textAt(sensor, "ReadingUnits") ?? "" }];
}

/** The manager's first log that has entries to read, else the chassis'. */
async function findEntries(shelf: Shelf): Promise<string | undefined> {
  const { client, target, call, chassis } = shelf;
  for (const owner of [await findManager(shelf, chassis), chassis]) {
    const link = linkAt(owner, "LogServices");
    if (link === undefined) continue;
    for (const { path } of membersOf(await client.find(target, link, call))) {
      const entries = linkAt(await client.find(target, path, call), "Entries");
      if (entries !== undefined) return entries;
    }
  }
  return undefined;
}

function describeEntry(entry: unknown): readonly DeviceLogEntry[] {
  const message = textAt(entry, "Message") ?? textAt(entry, "MessageId");
  const id = textAt(entry, "Id");
  if (message === undefined || id === undefined) return [];
  const created = Date.parse(textAt(entry, "Created") ?? "");
  return [
    {
      id,
      at: Number.isNaN(created) ? null : new Date(created),
      severity: healthAt(entry, "Severity") ?? "ok",
      message,
    },
  ];
}
