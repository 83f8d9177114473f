import { type Effect, move } from "../../kernel/effects.ts";
import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import type { RunEnd, RunOn } from "./target-kind.ts";

/** Its stages move the node. What they have come to stays when it fails: the node waits for an action on the job. */
export function decommissionEnded({ target }: RunOn<FleetNode>, { phase, message }: RunEnd): readonly Effect[] {
  if (phase !== "CANCELED") return [];
  return [
    move(fleetNodeLifecycle, target.id, "decommission_canceled", {
      ifPossible: true,
      ...(message !== "" && { message }),
    }),
    // A node that was quarantined before is so again.
    move(fleetNodeLifecycle, target.id, "still_quarantined", { ifPossible: true }),
  ];
}
