import type { DeviceHealth, Sensors } from "../../../capabilities/sensors.ts";
import { bmcFailure } from "../../transport/bmc-failure.ts";
import { nameOf } from "../../transport/bmc-gateway.ts";
import type { RedfishClient } from "../client.ts";
import { healthAt, linkAt, listAt } from "../resource.ts";
import { createShelves, type Shelves } from "../shelf/shelf.ts";
import type { Machines } from "./machine.ts";

const WORST = ["critical", "warning", "ok"] as const;

/**
 * The chassis around a machine. Where the machine is one of several behind its BMC, the first chassis may be another's, so that its own
 * system says which it is.
 */
export function createMachineChassis(machines: Machines, client: RedfishClient): Shelves {
  const only = createShelves(client);
  return {
    async open(target, call) {
      if (target.path === undefined) return only.open(target, call);
      const { places, system } = await machines.open(target, call);
      const path = linkAt(listAt(system, "Links", "Chassis")[0]);
      if (path === undefined)
        throw bmcFailure(
          "unsupported",
          target,
          `${nameOf(target)}: the computer system names no chassis, which has its sensors`,
        );
      const { resource: chassis, certificateFingerprint } = await client.get(target, path, call);
      return {
        target,
        call,
        client,
        places: { chassis: path, managers: places.managers, systems: undefined },
        chassis,
        certificateFingerprint,
      };
    },
  };
}

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
