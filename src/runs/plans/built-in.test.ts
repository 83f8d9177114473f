import { describe, expect, test } from "vitest";
import { validatePlan } from "../model/plan/plan.ts";
import { allSteps } from "../steps/index.ts";
import { BUILT_IN_PLANS } from "./built-in.ts";

/** The default plans as specified: plan, display name, and each step with kind, timeout in seconds, retries and payload. */
// biome-ignore format: a table is read by its columns
const SPECIFICATION = [
  ["plan-repave-ubuntu-2204-v1", "Repave Ubuntu 22.04 + Join Cluster", [
    ["set-netboot",          "netboot", 60,   2, { profile: "", mode: "PXE" }],
    ["repave-os",            "repave",  1800, 1, { image_ref: "ubuntu-22.04", cloud_init_ref: "" }],
    ["reboot",               "reboot",  300,  2, { force: false, mode: "bmc" }],
    ["join-cluster",         "join",    600,  1, { cluster_ref: "cluster-a" }],
    ["verify",               "verify",  300,  0, { cluster_ref: "cluster-a" }],
  ]],
  ["plan/join", "Join Cluster", [
    ["join-cluster",         "join",    300,  2, { cluster_ref: "" }],
    ["verify-in-cluster",    "verify",  120,  3, { cluster_ref: "" }],
  ]],
  ["plan/net-reconfig", "Network Reconfiguration", [
    ["apply-network-config", "net",     120,  2, { params: { action: "reconfigure" } }],
    ["verify-connectivity",  "ssh",     60,   3, { script_ref: "verify_network.sh", args: {} }],
  ]],
  ["plan/reboot", "Simple Reboot", [
    ["reboot",               "reboot",  300,  1, { force: false, mode: "bmc" }],
  ]],
  ["plan/repave-join", "Repave and Join Cluster", [
    ["set-netboot",          "netboot", 60,   2, { profile: "pxe-ubuntu-22.04", mode: "PXE" }],
    ["reboot-to-netboot",    "reboot",  300,  1, { force: false, mode: "bmc" }],
    ["repave-image",         "repave",  600,  1, { image_ref: "ubuntu:22.04-k8s", cloud_init_ref: "cloud-init/worker-node" }],
    ["join-cluster",         "join",    300,  2, { cluster_ref: "" }],
    ["verify-in-cluster",    "verify",  120,  3, { cluster_ref: "" }],
  ]],
  ["plan/rma", "Return Merchandise Authorization", [
    ["drain-check",          "ssh",     120,  1, { script_ref: "drain_check.sh", args: { force: "false" } }],
    ["graceful-shutdown",    "reboot",  120,  1, { force: false, mode: "bmc" }],
    ["mark-rma",             "rma",     60,   1, { reason: "hardware failure" }],
  ]],
  ["plan/upgrade", "Kubernetes Upgrade", [
    ["cordon-node",          "ssh",     60,   2, { script_ref: "cordon_node.sh", args: {} }],
    ["drain-node",           "ssh",     600,  1, { script_ref: "drain_node.sh", args: { timeout: "300", delete_local_data: "true" } }],
    ["upgrade-kubelet",      "ssh",     300,  1, { script_ref: "upgrade_k8s.sh", args: { version: "1.33.0" } }],
    ["restart-kubelet",      "reboot",  300,  1, { force: false, mode: "bmc" }],
    ["uncordon-node",        "ssh",     60,   2, { script_ref: "uncordon_node.sh", args: {} }],
    ["verify-upgrade",       "verify",  120,  3, { cluster_ref: "" }],
  ]],
] as const;

describe("the built-in plans", () => {
  test("are those of the specification, in the order of their ids", () => {
    expect(BUILT_IN_PLANS.map(({ planId, displayName }) => [planId, displayName])).toEqual(
      SPECIFICATION.map(([planId, displayName]) => [planId, displayName]),
    );
  });

  test.each(SPECIFICATION)("%s, %s, has its steps", (planId, _, steps) => {
    const found = BUILT_IN_PLANS.find((plan) => plan.planId === planId);
    expect(
      found?.steps.map((step) => [step.name, step.kind, step.timeoutSeconds, step.maxRetries, step.payload]),
    ).toEqual(steps);
  });

  test.each(BUILT_IN_PLANS.map((plan) => [plan.planId, plan] as const))(
    "%s is taken by the kinds of its steps as it is",
    (_, plan) => {
      expect(validatePlan(plan, allSteps)).toEqual(plan);
    },
  );
});
