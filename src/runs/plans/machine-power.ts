import type { BootSource } from "../../capabilities/boot-device.ts";
import type { Plan, Step } from "../model/plan/plan.ts";
import { bootDevice } from "../steps/boot-device.ts";
import { power } from "../steps/power.ts";

export type PowerOperation = "on" | "off" | "cycle";

const powerStep = (wanted: "on" | "off"): Step => ({
  name: `power-${wanted}`,
  kind: power.kind,
  timeoutSeconds: power.defaults.timeout / 1_000,
  maxRetries: power.defaults.maxRetries,
  payload: { power: wanted },
});

/** A cycle is proved by its halves: off was read before on is commanded. */
const STEPS: Readonly<Record<PowerOperation, readonly Step[]>> = {
  on: [powerStep("on")],
  off: [powerStep("off")],
  cycle: [powerStep("off"), powerStep("on")],
};

export const powerPlan = (operation: PowerOperation): Plan => ({
  planId: `machine-power-${operation}`,
  displayName: `Power ${operation}`,
  steps: STEPS[operation],
});

export const bootDevicePlan = (device: BootSource | "none"): Plan => ({
  planId: "machine-boot-device",
  displayName: `Boot device ${device}`,
  steps: [
    {
      name: "set-boot-device",
      kind: bootDevice.kind,
      timeoutSeconds: bootDevice.defaults.timeout / 1_000,
      maxRetries: bootDevice.defaults.maxRetries,
      payload: { device },
    },
  ],
});
