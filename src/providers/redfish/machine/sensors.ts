import type { DeviceHealth, Sensors } from "../../../capabilities/sensors.ts";
import { healthAt } from "../resource.ts";
import type { Machines } from "./machine.ts";

const WORST = ["critical", "warning", "ok"] as const;

/** The chassis' sensors and log, and of chassis and computer system the worse health: each knows of faults that the other does not. */
export function createMachineSensors(machines: Machines, chassis: Sensors): Sensors {
  return {
    async readHealth(target, call): Promise<DeviceHealth> {
      const { system } = await machines.open(target, call);
      const own = healthAt(system, "Status", "HealthRollup") ?? healthAt(system, "Status", "Health");
      const { status, readings } = await chassis.readHealth(target, call);
      return { status: WORST.find((each) => each === own || each === status) ?? "unknown", readings };
    },
    readLog: (target, call, options) => chassis.readLog(target, call, options),
  };
}
