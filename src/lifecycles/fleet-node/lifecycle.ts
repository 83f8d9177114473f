import {
  asked,
  caused,
  defineLifecycle,
  type Happening,
  type JsonObject,
  on,
  STAY,
  type StateOf,
} from "../../kernel/lifecycle.ts";
import { hours } from "../../kernel/time/duration.ts";
import type { FleetNode } from "./fleet-node.ts";

const isNotQuarantined = ({ facts }: FleetNode): boolean => facts.quarantineReason === null;
const isStillQuarantined = ({ facts }: FleetNode): boolean => facts.quarantineReason !== null;

/** Who quarantines it says why: as a reason of its own, or by the message of what happened. */
const why = (_: FleetNode, { message, cause, data = {} }: Happening): JsonObject => ({
  quarantineReason: typeof data.reason === "string" ? data.reason : (message ?? cause?.code ?? "unknown"),
});
const lifted = (): JsonObject => ({ quarantineReason: null });
const theToken = (_: FleetNode, { data = {} }: Happening): JsonObject =>
  data.enrollment === undefined ? {} : { enrollment: data.enrollment };

const quarantined = { sets: why };
const proven = { sets: lifted };
const reissued = {
  sets: theToken,
  added: "the token of a bundle is replaced by a new one; the node stays where it is",
};

/**
 * The nine states and seventeen edges of docs/specs/maas-node.md. Which stage a workflow is at, and whether it failed, is the run's
 * affair: the node's state is coarse, and stays so.
 *
 * `draining` and `removing` are entered only together with the job that leads out, or by it. Neither has a deadline: no node is
 * left in them since a short-lived lease ran out, nor moved out of them by the time that passed.
 */
export const fleetNodeLifecycle = defineLifecycle<FleetNode>()({
  kind: "fleet_node",
  initial: "bootstrap_issued",
  alsoInitial: ["enrolling"],

  // biome-ignore format: a table is read by its columns
  states: {
    bootstrap_issued: { sla: hours(48), doc: "A manual bootstrap bundle was issued; the node has not enrolled yet." },
    enrolling:        { sla: hours(12), doc: "It is being onboarded; it is not ready for scheduling." },
    active:           { rest: true,     doc: "Healthy and schedulable." },
    offline:          { rest: true, trouble: true, doc: "It should exist, and its agent does not call." },
    quarantined:      { rest: true, trouble: true, doc: "It exists and is kept from scheduling; its reason says why." },
    draining:         { sla: hours(24), doc: "A decommission empties it; it is unschedulable until that ends." },
    retired:          { rest: true,     doc: "Taken out of scheduling on purpose; it keeps its identity." },
    removing:         { sla: hours(12), doc: "A decommission removes it." },
    deleted:          { terminal: true, doc: "Removed. Its identity is never used again." },
  },

  // biome-ignore format: a table is read by its columns
  transitions: [
    // from               trigger                           to
    ["bootstrap_issued",  caused("onboarding_started"),     "enrolling"],
    ["bootstrap_issued",  on("bundle_expired"),             "enrolling"],
    ["bootstrap_issued",  asked("reissue_bootstrap"),       STAY, reissued],
    ["enrolling",         caused("onboarding_completed"),   "active", proven],
    ["enrolling",         caused("onboarding_failed"),      "quarantined", quarantined],
    ["enrolling",         caused("onboarding_canceled"),    "quarantined", quarantined],
    ["enrolling",         on("bundle_expired"),             "quarantined", quarantined],
    ["enrolling",         asked("quarantine"),              "quarantined", quarantined],
    ["enrolling",         asked("reissue_bootstrap"),       STAY, reissued],
    ["active",            caused("heartbeat_lost"),         "offline"],
    ["offline",           caused("heartbeat_recovered"),    "active", { provided: isNotQuarantined }],
    ["active",            caused("drift_found"),            "quarantined", quarantined],
    ["active",            caused("validation_failed"),      "quarantined", quarantined],
    ["active",            asked("quarantine"),              "quarantined", quarantined],
    ["offline",           caused("drift_found"),            "quarantined", quarantined],
    ["offline",           caused("validation_failed"),      "quarantined", quarantined],
    ["offline",           caused("still_quarantined"),      "quarantined", { provided: isStillQuarantined }],
    ["offline",           asked("quarantine"),              "quarantined", quarantined],
    ["quarantined",       asked("recover"),                 "active", proven],
    ["quarantined",       caused("health_proven"),          "active", proven],
    ["quarantined",       caused("onboarding_completed"),   "active", proven],
    ["quarantined",       asked("reissue_bootstrap"),       STAY, reissued],
    ["active",            asked("retire"),                  "draining"],
    ["active",            caused("drain_begun"),            "draining"],
    ["offline",           asked("retire"),                  "draining"],
    ["offline",           caused("drain_begun"),            "draining"],
    ["quarantined",       asked("retire"),                  "draining"],
    ["quarantined",       caused("drain_begun"),            "draining"],
    ["draining",          caused("drained"),                "retired"],
    ["draining",          caused("reset_completed"),        "offline"],
    ["draining",          caused("drain_failed"),           "offline"],
    ["draining",          caused("validation_failed"),      "offline"],
    ["draining",          caused("decommission_canceled"),  "offline"],
    ["draining",          asked("abort_drain"),             "offline"],
    ["retired",           asked("reactivate"),              "offline"],
    ["retired",           caused("reimaged"),               "offline"],
    ["retired",           caused("removal_begun"),          "removing"],
    ["removing",          caused("uninstall_failed"),       "retired"],
    ["removing",          caused("decommission_canceled"),  "retired"],
    ["removing",          asked("rollback_removal"),        "retired"],
    ["removing",          caused("uninstalled"),            "deleted"],
  ],
});

export type FleetNodeState = StateOf<typeof fleetNodeLifecycle>;
export const FLEET_NODE_STATES = Object.keys(fleetNodeLifecycle.states) as readonly FleetNodeState[];
