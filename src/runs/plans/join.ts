import type { PlanInput } from "../model/plan/plan.ts";

/** Joins the system that is there to the machine's cluster; installs nothing. */
export const join: PlanInput = {
  planId: "plan/join",
  displayName: "Join Cluster",
  // biome-ignore format: a table is read by its columns
  steps: [
    { name: "join-cluster",      timeoutSeconds: 300, maxRetries: 2, kind: "join",   payload: {} },
    { name: "verify-in-cluster", timeoutSeconds: 120, maxRetries: 3, kind: "verify", payload: {} },
  ],
};
