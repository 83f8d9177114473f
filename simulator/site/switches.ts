import { z } from "zod";
import { traitsOf } from "../devices/profile.ts";
import type { SwitchSpec } from "../devices/switch.ts";
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

const SWITCHES_PER_RACK = 9;
const MOST_SWITCHES = 64;
/** The trays of machines are below them. */
const FIRST_SLOT = 19;

const switchSchema = z.strictObject({
  id: name.optional(),
  address: loopbackAddress.optional(),
  nvos_address: loopbackAddress.optional(),
  mac: mac.optional(),
  nvos_mac: mac.optional(),
  serial: word.optional(),
  vendor: word.optional(),
  model: word.optional(),
  firmware: word.optional(),
  bios: word.optional(),
  cpld: word.optional(),
  nvos: word.optional(),
  ...accountFields,
  nvos_username: word.optional(),
  nvos_password: word.optional(),
  power: z.enum(["on", "off"]).optional(),
  profile: profile.optional(),
  /** Whether it runs the fabric of its rack already. */
  runs_fabric: z.boolean().optional(),
});
type SwitchEntry = z.infer<typeof switchSchema>;

/** What a rack of the site file may say about its switches. */
export const rackSwitchFields = {
  switches: z.union([z.int().min(0).max(MOST_SWITCHES), z.array(switchSchema).max(MOST_SWITCHES)]).optional(),
};
type RackSwitches = z.infer<z.ZodObject<typeof rackSwitchFields>> & {
  /** The cluster that its machines are nodes of already: such a rack has a fabric. */
  readonly cluster?: string | null | undefined;
};

export function switchesOf(
  rack: RackSwitches,
  { rackId, rackNumber }: Omit<Place, "slot">,
  seeded: SeededValues,
): SwitchSpec[] {
  const switches = rack.switches ?? SWITCHES_PER_RACK;
  const entries: readonly SwitchEntry[] =
    typeof switches === "number" ? Array.from({ length: switches }, () => ({})) : switches;
  const hasFabric = rack.cluster != null;
  return entries.map((entry, index) =>
    switchOf({ runs_fabric: hasFabric && index === 0, ...entry }, { rackId, rackNumber, slot: index + 1 }, seeded),
  );
}

function switchOf(entry: SwitchEntry, place: Place, seeded: SeededValues): SwitchSpec {
  const id = entry.id ?? `${place.rackId}-switch-${place.slot}`;
  return {
    kind: "switch",
    id,
    rack: place.rackId,
    slot: FIRST_SLOT + place.slot - 1,
    trayIndex: place.slot - 1,
    address: entry.address ?? addressOf("switchBmc", place),
    mac: entry.mac ?? macOf({ prefix: "12", seedName: `${id}/mac`, place, seeded }),
    uuid: seededUuid(seeded, `${id}/controller`),
    serial: entry.serial ?? `NS${seeded.label(`${id}/serial`, 6)}${placeDigits(place)}`,
    vendor: entry.vendor ?? "NVIDIA",
    model: entry.model ?? "N5110_LD",
    components: [
      component("bmc", "Management controller firmware", entry.firmware ?? "88.0002.1950", "manager_restart"),
      component("bios", "System firmware", entry.bios ?? "0ACTV_00.01.019", "reset"),
      component("cpld", "CPLD firmware", entry.cpld ?? "CPLD000370", "power_cycle"),
      component("nvos", "Operating system of the switch", entry.nvos ?? "25.02.2444", "reset"),
    ],
    username: entry.username ?? "root",
    password: entry.password ?? seeded.label(`${id}/password`, 16),
    nvos: {
      address: entry.nvos_address ?? addressOf("switchOs", place),
      mac: entry.nvos_mac ?? macOf({ prefix: "16", seedName: `${id}/nvos`, place, seeded }),
      username: entry.nvos_username ?? "admin",
      password: entry.nvos_password ?? seeded.label(`${id}/nvos-password`, 16),
    },
    lockout: { failures: entry.lockout_failures ?? 10, seconds: entry.lockout_seconds ?? 60 },
    initialPower: entry.power ?? "on",
    runsFabric: entry.runs_fabric ?? false,
    traits: traitsOf(entry.profile ?? "ideal"),
  };
}

const component = (
  id: string,
  called: string,
  version: string,
  takesEffect: SwitchSpec["components"][number]["takesEffect"],
) => ({
  id,
  name: called,
  version,
  takesEffect,
  of: id === "bmc" ? "/redfish/v1/Managers/bmc" : "/redfish/v1/Chassis/MGX_NVSwitch_0",
});
