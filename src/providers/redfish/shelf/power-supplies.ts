import type { PowerSupply } from "../../../capabilities/inventory.ts";
import type { PowerState } from "../../../capabilities/power-control.ts";
import { healthAt, linkAt, listAt, membersOf, numberAt, type Resource, textAt } from "../resource.ts";
import { isSupplyOn, isSupplyPresent } from "./layouts.ts";
import { readEach, type Shelf } from "./shelf.ts";

const MOST_SUPPLIES = 32;

export interface PowerSubsystem {
  readonly supplies: readonly Resource[];
  readonly capacityWatts: number | null;
}

/** The supplies, from today's `PowerSubsystem` or from the older `Power`, whichever the shelf has. */
export async function readPowerSubsystem(shelf: Shelf): Promise<PowerSubsystem> {
  const { client, target, call, chassis } = shelf;
  const modern = linkAt(chassis, "PowerSubsystem");
  const subsystem = modern === undefined ? undefined : await client.find(target, modern, call);
  if (subsystem !== undefined) {
    const link = linkAt(subsystem, "PowerSupplies");
    const collection = link === undefined ? undefined : await client.find(target, link, call);
    const members = membersOf(collection).slice(0, MOST_SUPPLIES);
    const paths = members.filter(({ resource }) => resource === undefined).map(({ path }) => path);
    const supplies = [...members.map(({ resource }) => resource), ...(await readEach(shelf, paths))];
    return { supplies: supplies.filter(isSupplyPresent), capacityWatts: numberAt(subsystem, "CapacityWatts") ?? null };
  }
  const older = linkAt(chassis, "Power");
  const power = older === undefined ? undefined : await client.find(target, older, call);
  return {
    supplies: listAt(power, "PowerSupplies").filter(isSupplyPresent).slice(0, MOST_SUPPLIES),
    capacityWatts: numberAt(listAt(power, "PowerControl")[0], "PowerCapacityWatts") ?? null,
  };
}

export function describeSupply(supply: Resource, index: number): PowerSupply {
  return {
    name: textAt(supply, "Id") ?? textAt(supply, "MemberId") ?? textAt(supply, "Name") ?? `supply ${index + 1}`,
    serial: textAt(supply, "SerialNumber") ?? null,
    firmware: textAt(supply, "FirmwareVersion") ?? null,
    on: isSupplyOn(supply),
    health: healthAt(supply, "Status", "Health") ?? null,
  };
}

/** For shelves whose chassis does not speak of power: on while any supply is. */
export function powerOfSupplies(supplies: readonly Resource[]): PowerState {
  const states = supplies.map(isSupplyOn);
  if (states.includes(true)) return "on";
  return states.length > 0 && states.every((state) => state === false) ? "off" : "unknown";
}
