import type { Capabilities, Provider } from "../../capabilities/provider.ts";
import { type Clock, systemClock } from "../../kernel/time/clock.ts";
import { type Duration, minutes } from "../../kernel/time/duration.ts";
import type { IpmiBootMode } from "./boot-flags.ts";
import { createIpmiClient, type IpmiClientOptions } from "./client.ts";
import { createComputerSystem } from "./computer-system.ts";
import { createMachineBoot } from "./machine-boot.ts";
import { createMachineLocator } from "./machine-locator.ts";
import { createMachinePower, type MachinePowerOptions } from "./machine-power.ts";
import { createMachineSensors } from "./machine-sensors.ts";
import { SensorWatch } from "./sensor-watch.ts";

export interface IpmiProviderOptions extends IpmiClientOptions, Partial<Omit<MachinePowerOptions, "clock">> {
  readonly clock?: Clock;
  /** How machines are told to boot when a device is named. Absent: `uefi`. */
  readonly bootMode?: IpmiBootMode;
  /** How often the sensors of a machine are read to tell its health. Absent: every 5 minutes. */
  readonly sensorsEvery?: Duration;
}

export interface IpmiProvider extends Provider {
  readonly can: Pick<Capabilities, "power" | "reset" | "boot" | "system" | "locator" | "sensors" | "vitals">;
}

/** Machines over IPMI 2.0, by way of ipmitool. There is nothing to close: each request is a program that ends. */
export function createIpmiProvider(options: IpmiProviderOptions): IpmiProvider {
  const client = createIpmiClient(options);
  const { clock = systemClock, sensorsEvery = minutes(5) } = options;
  const power = createMachinePower(client, { ...options, clock });
  const machine = createComputerSystem(client, new SensorWatch(client, clock, sensorsEvery));
  return {
    name: "ipmi",
    can: {
      power,
      reset: power,
      boot: createMachineBoot(client, options.bootMode ?? "uefi"),
      system: machine,
      vitals: machine,
      locator: createMachineLocator(client),
      sensors: createMachineSensors(client),
    },
  };
}
