import type { FaultType } from "../../../simulator/faults/fault-rule.ts";

/** Faults of firmware and the fabric, which only work on a rack meets: `integration/racks/faults.test.ts` explains each of them. */
export const RACK_FAULTS = [
  "flash_stuck",
  "flash_lies",
  "flash_fails",
  "flash_wrong_image_accepted",
  "update_busy",
  "task_lost",
  "unreachable_after_flash",
  "fabric_never_configured",
] as const satisfies readonly FaultType[];
export type RackFault = (typeof RACK_FAULTS)[number];
