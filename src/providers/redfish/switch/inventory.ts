import type { DeviceIdentity, DeviceInterface, DevicePlace, Inventory } from "../../../capabilities/inventory.ts";
import { findManager } from "../manager.ts";
import { linkAt, listAt, membersOf, numberAt, type Resource, textAt } from "../resource.ts";
import { readEach } from "../shelf/shelf.ts";
import type { OpenSwitch, Switches } from "./switch.ts";

const MOST_INTERFACES = 16;

export function createSwitchInventory(switches: Switches): Inventory {
  return {
    identify: async (target, call) => identityOf(await switches.open(target, call)),

    async readInventory(target, call) {
      const opened = await switches.open(target, call);
      const manager = await findManager(opened, opened.chassis);
      return {
        identity: identityOf(opened),
        bmcFirmware: textAt(manager, "FirmwareVersion") ?? null,
        powerSupplies: [],
        capacityWatts: null,
        voltage: null,
        place: placeOf(opened.chassis),
        interfaces: await readInterfaces(opened, manager),
      };
    },
  };
}

const identityOf = ({ chassis, certificateFingerprint }: OpenSwitch): DeviceIdentity => ({
  serial: textAt(chassis, "SerialNumber") ?? null,
  vendor: textAt(chassis, "Manufacturer") ?? null,
  model: textAt(chassis, "Model") ?? null,
  ...(certificateFingerprint === undefined ? {} : { certificateFingerprint }),
});

/** Where makers write the slot, and the place among the trays of its kind, best first. */
const SLOT_PLACES = [
  ["Location", "PartLocation", "LocationOrdinalValue"],
  ["Oem", "Nvidia", "ChassisPhysicalSlotNumber"],
] as const;
const INDEX_PLACES = [
  ["Oem", "Nvidia", "TrayIndex"],
  ["Oem", "Nvidia", "ComputeTrayIndex"],
] as const;

/** Exported for its test. */
export const placeOf = (chassis: Resource): DevicePlace => ({
  slot: firstNumber(chassis, SLOT_PLACES),
  trayIndex: firstNumber(chassis, INDEX_PLACES),
});

function firstNumber(chassis: Resource, places: readonly (readonly string[])[]): number | null {
  for (const place of places) {
    const found = numberAt(chassis, ...place);
    if (found !== undefined && Number.isInteger(found) && found >= 0) return found;
  }
  return null;
}

/** The ports that the controller knows of: its own, and that of the switch's operating system. */
async function readInterfaces(opened: OpenSwitch, manager: Resource | undefined): Promise<readonly DeviceInterface[]> {
  const link = linkAt(manager, "EthernetInterfaces");
  if (link === undefined) return [];
  const members = membersOf(await opened.client.find(opened.target, link, opened.call)).slice(0, MOST_INTERFACES);
  const ports = await readEach(
    opened,
    members.map(({ path }) => path),
  );
  return ports.flatMap((port) => {
    const mac = textAt(port, "PermanentMACAddress") ?? textAt(port, "MACAddress");
    if (mac === undefined) return [];
    const address =
      textAt(listAt(port, "IPv4Addresses")[0], "Address") ?? textAt(listAt(port, "IPv6Addresses")[0], "Address");
    return [{ mac: mac.toLowerCase(), address: address ?? null }];
  });
}
