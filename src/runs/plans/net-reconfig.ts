import type { PlanInput } from "../model/plan/plan.ts";

/** Changes network settings, and proves that the machine is still reached. */
export const netReconfig: PlanInput = {
  planId: "plan/net-reconfig",
  displayName: "Network Reconfiguration",
  // biome-ignore format: a table is read by its columns
  steps: [
    { name: "apply-network-config", timeoutSeconds: 120, maxRetries: 2, kind: "net", payload: { params: { action: "reconfigure" } } },
    { name: "verify-connectivity",  timeoutSeconds: 60,  maxRetries: 3, kind: "ssh", payload: { script_ref: "verify_network.sh" } },
  ],
};
