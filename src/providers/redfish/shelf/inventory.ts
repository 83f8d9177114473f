import type { DeviceIdentity, Inventory } from "../../../capabilities/inventory.ts";
import { findManager } from "../manager.ts";
import { textAt } from "../resource.ts";
import { readOutput } from "./meter.ts";
import { describeSupply, readPowerSubsystem } from "./power-supplies.ts";
import type { Shelf, Shelves } from "./shelf.ts";

export function createInventory(shelves: Shelves): Inventory {
  return {
    async identify(target, call) {
      return identityOf(await shelves.open(target, call));
    },

    async readInventory(target, call) {
      const shelf = await shelves.open(target, call);
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

function identityOf({ chassis, certificateFingerprint }: Shelf): DeviceIdentity {
  return {
    serial: textAt(chassis, "SerialNumber") || null,
    vendor: textAt(chassis, "Manufacturer") || null,
    model: textAt(chassis, "Model") || null,
    ...(certificateFingerprint === undefined ? {} : { certificateFingerprint }),
  };
}
