import type { Locator } from "../../../capabilities/locator.ts";
import { bmcFailure } from "../../transport/bmc-failure.ts";
import { nameOf } from "../../transport/bmc-gateway.ts";
import { type Resource, textAt, valueAt } from "../resource.ts";
import type { Machines } from "./machine.ts";

type Light = "lit" | "dark" | "unknown";

export function createMachineLocator(machines: Machines): Locator {
  return {
    async readLocator(target, call) {
      return lightOf((await machines.open(target, call)).system);
    },
    async setLocator(target, light, call) {
      const { client, places, system } = await machines.open(target, call);
      if (lightOf(system) === light) return;
      const change = changeFor(system, light);
      if (change === undefined) {
        throw bmcFailure("unsupported", target, `${nameOf(target)}: this machine has no locator light to switch`);
      }
      await client.patch(target, places.system, change, call);
    },
  };
}

function lightOf(system: Resource): Light {
  const active = valueAt(system, "LocationIndicatorActive");
  if (typeof active === "boolean") return active ? "lit" : "dark";
  const led = textAt(system, "IndicatorLED")?.toLowerCase();
  if (led === undefined || led === "unknown") return "unknown";
  return led === "off" ? "dark" : "lit";
}

/** In the present form, or in the one that older firmware has. */
function changeFor(system: Resource, light: "lit" | "dark"): Resource | undefined {
  if (typeof valueAt(system, "LocationIndicatorActive") === "boolean")
    return { LocationIndicatorActive: light === "lit" };
  if (textAt(system, "IndicatorLED") === undefined) return undefined;
  return { IndicatorLED: light === "lit" ? "Blinking" : "Off" };
}
