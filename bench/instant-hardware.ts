import type { DeviceInventory } from "../src/capabilities/inventory.ts";
import type { PowerState } from "../src/capabilities/power-control.ts";
import type { Provider } from "../src/capabilities/provider.ts";
import { milliseconds } from "../src/kernel/time/duration.ts";

export interface InstantHardware {
  readonly provider: Provider;
  /** Called when a power command reaches a device, with the device's address. */
  onPowerCommand: (address: string) => void;
}

const SUPPLIES = 6;
const ON_TIME = milliseconds(1_000);

/** Power shelves that answer at once, with as much to tell as real ones; what is left to measure is the engine. */
export function createInstantHardware(): InstantHardware {
  const power = new Map<string, PowerState>();
  const hardware: InstantHardware = {
    onPowerCommand() {},
    provider: {
      name: "instant",
      can: {
        power: {
          async readPower({ address }, call) {
            call.mayTouchDevice(ON_TIME);
            return power.get(address) ?? "on";
          },
          async setPower({ address }, desired, call) {
            call.mayTouchDevice(ON_TIME);
            hardware.onPowerCommand(address);
            power.set(address, desired);
            return { commanded: true };
          },
        },
        inventory: {
          identify: async ({ address }) => inventoryOf(address).identity,
          async readInventory({ address }, call) {
            call.mayTouchDevice(ON_TIME);
            return inventoryOf(address);
          },
        },
        sensors: {
          async readHealth({ address }, call) {
            call.mayTouchDevice(ON_TIME);
            return {
              status: "ok",
              readings: [
                { name: `inlet of ${address}`, value: 24.5, unit: "Cel" },
                { name: "output power", value: 12_400, unit: "W" },
                { name: "output voltage", value: 50.8, unit: "V" },
                { name: "fan 1", value: 8_200, unit: "RPM" },
              ],
            };
          },
          readLog: async () => [],
        },
      },
    },
  };
  return hardware;
}

function inventoryOf(address: string): DeviceInventory {
  return {
    identity: { serial: `SN-${address}`, vendor: "Instant", model: "Shelf 33" },
    bmcFirmware: "1.4.2",
    capacityWatts: 33_000,
    voltage: 50,
    powerSupplies: Array.from({ length: SUPPLIES }, (_, index) => ({
      name: `PSU ${index + 1}`,
      serial: `SN-${address}-${index + 1}`,
      firmware: "7.1",
      on: true,
      health: "ok" as const,
    })),
  };
}
