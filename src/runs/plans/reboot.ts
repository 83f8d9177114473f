import type { PlanInput } from "../model/plan/plan.ts";

/** Boots the machine anew, and nothing else. */
export const reboot: PlanInput = {
  planId: "plan/reboot",
  displayName: "Simple Reboot",
  // biome-ignore format: a table is read by its columns
  steps: [
    { name: "reboot", timeoutSeconds: 300, maxRetries: 1, kind: "reboot", payload: { force: false } },
  ],
};
