import type { DeviceIdentity, Inventory } from "../../../capabilities/inventory.ts";
import { findManager } from "../manager.ts";
import { notSuchDevice } from "../members.ts";
import { lastSegment, linkAt, listAt, membersOf, textAt } from "../resource.ts";
import { isCalledShelf } from "./layouts.ts";
import { readOutput } from "./meter.ts";
import { describeSupply, readPowerSubsystem } from "./power-supplies.ts";
import type { Shelf, Shelves } from "./shelf.ts";

export function createInventory(shelves: Shelves): Inventory {
  return {
    async identify(target, call) {
      const shelf = await shelves.open(target, call);
      await confirmShelf(shelf);
      return identityOf(shelf);
    },

    async readInventory(target, call) {
      const shelf = await shelves.open(target, call);
      await confirmShelf(shelf);
      const identity = identityOf(shelf);
      const manager = await findManager(shelf, shelf.chassis);
      const { supplies, capacityWatts } = await readPowerSubsystem(shelf);
      const { volts } = await readOutput(shelf);
      return {
        identity,
        bmcFirmware: textAt(manager, "FirmwareVersion") ?? null,
        powerSupplies: supplies.map(describeSupply),
        capacityWatts,
        // Nothing is measured while the shelf is off, and zero volts is not what it can give.
        voltage: volts !== undefined && volts > 0 ? volts : null,
      };
    },
  };
}

/**
 * Refuses the BMC of a machine: a server has a chassis with power supplies too, and whoever takes it for a shelf switches it off. A
 * chassis that does not call itself a shelf must have no computer system.
 */
async function confirmShelf(shelf: Shelf): Promise<void> {
  const { client, target, call, chassis, places } = shelf;
  if (isCalledShelf(places.chassis, chassis)) return;
  const own = linkAt(listAt(chassis, "Links", "ComputerSystems")[0]);
  if (own === undefined && places.isWithoutSystems) return;
  const collection = places.systems === undefined ? undefined : await client.find(target, places.systems, call);
  const system = own ?? membersOf(collection)[0]?.path;
  if (system !== undefined) {
    const type = textAt(chassis, "ChassisType") ?? "no type";
    throw notSuchDevice(
      target,
      `: chassis ${lastSegment(places.chassis)} (${type}) belongs to computer system ${lastSegment(system)}: this is the BMC of a machine and not of a power shelf; register it with millwright machine register`,
    );
  }
  places.isWithoutSystems = true;
}

function identityOf({ chassis, certificateFingerprint }: Shelf): DeviceIdentity {
  return {
    serial: textAt(chassis, "SerialNumber") || null,
    vendor: textAt(chassis, "Manufacturer") || null,
    model: textAt(chassis, "Model") || null,
    ...(certificateFingerprint === undefined ? {} : { certificateFingerprint }),
  };
}
