import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import type { RunThing } from "../model/lifecycle.ts";
import type { RunTarget } from "./run-target.ts";

/** What is the run's alone while it works: its target, and the machine that a fleet node is. */
export function claimedBy({ target: { kind, id, thing } }: Pick<RunThing, "target">): readonly RunTarget[] {
  const claimed: RunTarget[] = [{ kind, id }];
  if (kind === fleetNodeLifecycle.kind && thing !== null)
    claimed.push({ kind: machineLifecycle.kind, id: (thing as FleetNode).machineId });
  return claimed;
}
