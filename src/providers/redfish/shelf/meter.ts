import type { PowerState } from "../../../capabilities/power-control.ts";
import { lastSegment, linkAt, membersOf, numberAt } from "../resource.ts";
import type { Shelf, ShelfPlaces } from "./shelf.ts";

/** What is measured where the shelf gives its power; `undefined` where it has no such sensor. */
export interface OutputReading {
  readonly watts: number | undefined;
  readonly volts: number | undefined;
}

const OUTPUT_POWER = /^(?!.*(?:limit|max)).*(?:out(?:put)?[-_ ]?(?:power|watts)|power[-_ ]?out(?:put)?|p_?out)/i;
const OUTPUT_VOLTAGE =
  /^(?!.*(?:limit|max)).*(?:out(?:put)?[-_ ]?volt(?:age|s)?|volt(?:age)?[-_ ]?out(?:put)?|v_?out)/i;

/** Sensors are told by their ids, which costs one request per BMC and not one per sensor. */
export async function readOutput(shelf: Shelf): Promise<OutputReading> {
  shelf.places.meter ??= await findMeter(shelf);
  const { watts, volts } = shelf.places.meter;
  return { watts: await readSensor(shelf, watts), volts: await readSensor(shelf, volts) };
}

async function findMeter({ client, target, call, chassis }: Shelf): Promise<NonNullable<ShelfPlaces["meter"]>> {
  const link = linkAt(chassis, "Sensors");
  const paths = link === undefined ? [] : membersOf(await client.find(target, link, call)).map(({ path }) => path);
  return {
    watts: paths.find((path) => OUTPUT_POWER.test(lastSegment(path))),
    volts: paths.find((path) => OUTPUT_VOLTAGE.test(lastSegment(path))),
  };
}

async function readSensor(shelf: Shelf, path: string | undefined): Promise<number | undefined> {
  if (path === undefined) return undefined;
  const sensor = await shelf.client.find(shelf.target, path, shelf.call);
  if (sensor === undefined) shelf.places.meter = undefined; // Gone with other firmware: looked for anew next time.
  return numberAt(sensor, "Reading");
}

/** More than a shelf that is off can give: sensors show a few watts where there are none. */
const SURELY_GIVING_WATTS = 50;
/** Less than any shelf that is on: 12 V is the lowest in use. */
const SURELY_DEAD_VOLTS = 5;
const SURELY_DEAD_WATTS = 10;

/**
 * What the controller reports, checked against the meter; "unknown" when the two cannot both be true.
 *
 * Watts prove that a shelf gives power. Volts do not, since other shelves may feed the same bus bar; but a dead bus bar
 * proves that this one gives none. On without load is no contradiction.
 */
export function checkedByMeter(reported: PowerState, { watts, volts }: OutputReading): PowerState {
  if (reported === "off" && watts !== undefined && watts > SURELY_GIVING_WATTS) return "unknown";
  if (reported === "on" && volts !== undefined && volts < SURELY_DEAD_VOLTS && (watts ?? 0) < SURELY_DEAD_WATTS)
    return "unknown";
  return reported;
}
