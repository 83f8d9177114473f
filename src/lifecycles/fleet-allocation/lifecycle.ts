import {
  asked,
  caused,
  defineLifecycle,
  type Happening,
  type JsonObject,
  on,
  onFailure,
} from "../../kernel/lifecycle.ts";
import { minutes } from "../../kernel/time/duration.ts";
import type { FleetAllocation } from "./fleet-allocation.ts";

const asWished = { carries: (): JsonObject => ({ force: false }) };
const forced = { carries: (): JsonObject => ({ force: true }) };
const why = ({ state: { force } }: FleetAllocation, { message, cause }: Happening): JsonObject => ({
  ...(force !== undefined && { force }),
  cause: message ?? "unknown",
  ...(cause && { failure: cause }),
});

/**
 * The allocations of docs/specs/maas-node.md. One that could not be released keeps its node: only another release, asked for by somebody,
 * leads out.
 */
export const fleetAllocationLifecycle = defineLifecycle<FleetAllocation>()({
  kind: "fleet_allocation",
  initial: "requested",

  // biome-ignore format: a table is read by its columns
  states: {
    requested:      { sla: minutes(5),  doc: "Somebody asked for the node; nothing was done yet." },
    provisioning:   { sla: minutes(30), deadline: minutes(60), doc: "The node is prepared for whom it is for." },
    active:         { rest: true,       doc: "The node is in use." },
    failed:         { terminal: true, trouble: true, doc: "The node could not be prepared. Nobody uses it." },
    releasing:      { sla: minutes(15), deadline: minutes(30), doc: "What is left of the use is cleaned up." },
    released:       { terminal: true,   doc: "Nobody uses the node any more." },
    release_failed: { rest: true, trouble: true, doc: "The cleanup could not be proven: the node stays assigned until somebody asks again." },
  },

  // biome-ignore format: a table is read by its columns
  transitions: [
    // from            trigger                         to
    ["requested",      on("picked_up"),                "provisioning"],
    ["provisioning",   on("agent_ready"),              "active"],
    ["provisioning",   onFailure("gave_up"),           "failed",         { carries: why }],
    ["active",         asked("release"),               "releasing",      asWished],
    ["active",         asked("force_release"),         "releasing",      forced],
    ["active",         caused("node_leaves"),          "releasing",      forced],
    ["releasing",      on("cleanup_proven"),           "released"],
    ["releasing",      onFailure("retries_exhausted"), "release_failed", { carries: why }],
    ["release_failed", asked("release"),               "releasing",      asWished],
    ["release_failed", asked("force_release"),         "releasing",      forced],
    ["release_failed", caused("node_leaves"),          "releasing",      forced],
  ],
});
