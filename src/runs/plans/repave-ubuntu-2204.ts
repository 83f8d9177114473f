import type { PlanInput } from "../model/plan/plan.ts";

/** The specification's sample plan, as it is printed there. */
export const repaveUbuntu2204: PlanInput = {
  planId: "plan-repave-ubuntu-2204-v1",
  displayName: "Repave Ubuntu 22.04 + Join Cluster",
  // biome-ignore format: a table is read by its columns
  steps: [
    { name: "set-netboot",  timeoutSeconds: 60,   maxRetries: 2, kind: "netboot", payload: { mode: "PXE" } },
    { name: "repave-os",    timeoutSeconds: 1800, maxRetries: 1, kind: "repave",  payload: { image: "ubuntu-22.04" } },
    { name: "reboot",       timeoutSeconds: 300,  maxRetries: 2, kind: "reboot",  payload: { mode: "bmc" } },
    { name: "join-cluster", timeoutSeconds: 600,  maxRetries: 1, kind: "join",    payload: { cluster_ref: "cluster-a" } },
    { name: "verify",       timeoutSeconds: 300,  maxRetries: 0, kind: "verify",  payload: { cluster_ref: "cluster-a" } },
  ],
};
