import type { PlanInput } from "../model/plan/plan.ts";

/** A fresh system that serves in the machine's cluster. */
export const repaveJoin: PlanInput = {
  planId: "plan/repave-join",
  displayName: "Repave and Join Cluster",
  // biome-ignore format: a table is read by its columns
  steps: [
    { name: "set-netboot",       timeoutSeconds: 60,  maxRetries: 2, kind: "netboot", payload: { profile: "pxe-ubuntu-22.04" } },
    { name: "reboot-to-netboot", timeoutSeconds: 300, maxRetries: 1, kind: "reboot",  payload: { force: false } },
    { name: "repave-image",      timeoutSeconds: 600, maxRetries: 1, kind: "repave",  payload: { image_ref: "ubuntu:22.04-k8s", cloud_init_ref: "cloud-init/worker-node" } },
    { name: "join-cluster",      timeoutSeconds: 300, maxRetries: 2, kind: "join",    payload: {} },
    { name: "verify-in-cluster", timeoutSeconds: 120, maxRetries: 3, kind: "verify",  payload: {} },
  ],
};
