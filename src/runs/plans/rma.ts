import type { PlanInput } from "../model/plan/plan.ts";

/** Takes a machine out of service for return. */
export const rma: PlanInput = {
  planId: "plan/rma",
  displayName: "Return Merchandise Authorization",
  // biome-ignore format: a table is read by its columns
  steps: [
    { name: "drain-check",       timeoutSeconds: 120, maxRetries: 1, kind: "ssh",    payload: { script_ref: "drain_check.sh", args: { force: "false" } } },
    { name: "graceful-shutdown", timeoutSeconds: 120, maxRetries: 1, kind: "reboot", payload: { force: false } },
    { name: "mark-rma",          timeoutSeconds: 60,  maxRetries: 1, kind: "rma",    payload: { reason: "hardware failure" } },
  ],
};
