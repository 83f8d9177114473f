import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { DeviceIdentity, Inspect } from "../../capabilities/inspect.ts";
import { nameOf } from "../bmc-gateway.ts";
import { readOutput } from "./meter.ts";
import { describeSupply, readPowerSubsystem } from "./power-supplies.ts";
import { textAt } from "./resource.ts";
import { findManager, type Shelf, type Shelves } from "./shelf.ts";

export function createInspect(shelves: Shelves): Inspect {
  return {
    async identify(target, call) {
      return identityOf(await shelves.open(target, call));
    },

    async readInventory(target, call) {
      const shelf = await shelves.open(target, call);
      const identity = identityOf(shelf);
      const manager = await findManager(shelf);
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

function identityOf({ target, places, chassis, certificateFingerprint }: Shelf): DeviceIdentity {
  const serial = textAt(chassis, "SerialNumber");
  if (serial === undefined) {
    throw new DeviceFailure(
      "fail",
      "protocol",
      `${nameOf(target)}: ${places.chassis} states no SerialNumber, so nobody can say which shelf it is`,
    );
  }
  return {
    serial,
    vendor: textAt(chassis, "Manufacturer") ?? "unknown",
    model: textAt(chassis, "Model") ?? "unknown",
    ...(certificateFingerprint === undefined ? {} : { certificateFingerprint }),
  };
}
