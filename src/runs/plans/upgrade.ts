import type { PlanInput } from "../model/plan/plan.ts";

/** Upgrades the kubelet of a node, which is drained meanwhile. */
export const upgrade: PlanInput = {
  planId: "plan/upgrade",
  displayName: "Kubernetes Upgrade",
  // biome-ignore format: a table is read by its columns
  steps: [
    { name: "cordon-node",     timeoutSeconds: 60,  maxRetries: 2, kind: "ssh",    payload: { script_ref: "cordon_node.sh" } },
    { name: "drain-node",      timeoutSeconds: 600, maxRetries: 1, kind: "ssh",    payload: { script_ref: "drain_node.sh", args: { timeout: "300", delete_local_data: "true" } } },
    { name: "upgrade-kubelet", timeoutSeconds: 300, maxRetries: 1, kind: "ssh",    payload: { script_ref: "upgrade_k8s.sh", args: { version: "1.33.0" } } },
    { name: "restart-kubelet", timeoutSeconds: 300, maxRetries: 1, kind: "reboot", payload: { force: false } },
    { name: "uncordon-node",   timeoutSeconds: 60,  maxRetries: 2, kind: "ssh",    payload: { script_ref: "uncordon_node.sh" } },
    { name: "verify-upgrade",  timeoutSeconds: 120, maxRetries: 3, kind: "verify", payload: {} },
  ],
};
