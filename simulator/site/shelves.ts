import { z } from "zod";
import { CHASSIS_ID, type PowerShelfSpec, SHELF_LAYOUTS, type ShelfLayout } from "../devices/power-shelf.ts";
import { traitsOf } from "../devices/profile.ts";
import type { SeededValues } from "../seeded-values.ts";
import {
  accountFields,
  addressOf,
  loopbackAddress,
  mac,
  macOf,
  name,
  type Place,
  placeDigits,
  profile,
  seededUuid,
  word,
} from "./fields.ts";

const SHELVES_PER_RACK = 8;
const SUPPLIES_PER_SHELF = 6;
const MOST_SHELVES = 64;

const shelfSchema = z.strictObject({
  id: name.optional(),
  address: loopbackAddress.optional(),
  mac: mac.optional(),
  serial: word.optional(),
  layout: z.enum(SHELF_LAYOUTS).optional(),
  vendor: word.optional(),
  model: word.optional(),
  firmware: word.optional(),
  psu_firmware: word.optional(),
  ...accountFields,
  power: z.enum(["on", "off"]).optional(),
  capacity_watts: z.number().positive().max(1_000_000).optional(),
  profile: profile.optional(),
});
type ShelfEntry = z.infer<typeof shelfSchema>;

/** What a rack of the site file may say about its shelves. */
export const rackShelfFields = {
  layout: z.enum(SHELF_LAYOUTS).optional(),
  shelves: z.union([z.int().min(0).max(MOST_SHELVES), z.array(shelfSchema).max(MOST_SHELVES)]).optional(),
};
type RackShelves = z.infer<z.ZodObject<typeof rackShelfFields>>;

interface Vendor {
  readonly vendor: string;
  readonly model: string;
  readonly firmware: string;
  readonly psuFirmware: string;
  readonly serialPrefix: string;
}
const VENDOR: Readonly<Record<ShelfLayout, Vendor>> = {
  liteon: { vendor: "LITE-ON", model: "PF-1333-7R", firmware: "r1.3.9", psuFirmware: "0204", serialPrefix: "LT" },
  standard: { vendor: "Generic", model: "PS-33K", firmware: "2.4.1", psuFirmware: "0204", serialPrefix: "GN" },
};

/** Racks alternate between the layouts, so that the smallest datacentre already shows both. */
export const layoutOf = ({ layout }: RackShelves, { rackNumber }: Pick<Place, "rackNumber">): ShelfLayout =>
  layout ?? (rackNumber % 2 === 1 ? "liteon" : "standard");

export function shelvesOf(
  rack: RackShelves,
  { rackId, rackNumber }: Omit<Place, "slot">,
  seeded: SeededValues,
): PowerShelfSpec[] {
  const layout = layoutOf(rack, { rackNumber });
  const shelves = rack.shelves ?? SHELVES_PER_RACK;
  const entries: readonly ShelfEntry[] =
    typeof shelves === "number" ? Array.from({ length: shelves }, () => ({})) : shelves;
  return entries.map((entry, index) => shelfOf({ layout, ...entry }, { rackId, rackNumber, slot: index + 1 }, seeded));
}

function shelfOf(
  entry: ShelfEntry & { layout?: ShelfLayout | undefined },
  place: Place,
  seeded: SeededValues,
): PowerShelfSpec {
  const id = entry.id ?? `${place.rackId}-shelf-${place.slot}`;
  const layout = entry.layout ?? "liteon";
  const vendor = VENDOR[layout];
  return {
    kind: "power_shelf",
    id,
    rack: place.rackId,
    slot: place.slot,
    address: entry.address ?? addressOf("shelf", place),
    mac: entry.mac ?? macOf({ prefix: "02", seedName: `${id}/mac`, place, seeded }),
    uuid: seededUuid(seeded, `${id}/controller`),
    serial: entry.serial ?? `${vendor.serialPrefix}${seeded.label(`${id}/serial`, 6)}${placeDigits(place)}`,
    layout,
    vendor: entry.vendor ?? vendor.vendor,
    model: entry.model ?? vendor.model,
    components: [
      {
        id: "pmc",
        name: "Power management controller firmware",
        version: entry.firmware ?? vendor.firmware,
        takesEffect: "manager_restart",
        of: "/redfish/v1/Managers/bmc",
      },
      {
        id: "psu",
        name: "Power supply firmware",
        version: entry.psu_firmware ?? vendor.psuFirmware,
        takesEffect: "at_once",
        of: `/redfish/v1/Chassis/${CHASSIS_ID[layout]}`,
      },
    ],
    username: entry.username ?? "root",
    password: entry.password ?? seeded.label(`${id}/password`, 16),
    supplies: Array.from({ length: SUPPLIES_PER_SHELF }, (_, index) => ({
      name: `ps${index}`,
      serial: `${vendor.serialPrefix}P${seeded.label(`${id}/supply-${index}`, 8)}${index}`,
    })),
    capacityWatts: entry.capacity_watts ?? 33_000,
    initialPower: entry.power ?? "on",
    traits: traitsOf(entry.profile ?? "ideal"),
    lockout: { failures: entry.lockout_failures ?? 10, seconds: entry.lockout_seconds ?? 60 },
  };
}
