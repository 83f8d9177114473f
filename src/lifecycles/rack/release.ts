import { type MoveEffect, move } from "../../kernel/effects.ts";
import { hostReprovisionLifecycle } from "../host-reprovision/lifecycle.ts";
import { switchLifecycle } from "../switch/lifecycle.ts";
import type { Rack } from "./rack.ts";

/** However a maintenance ends, none of its devices waits any longer for a phase that was skipped, or never came. */
export function releasesDevices({ state, facts: { workSet } }: Rack): readonly MoveEffect[] {
  // Later, its devices may be in another rack, and wait for that.
  if (state.name !== "maintenance" || workSet === null) return [];
  return [
    ...workSet.switches.map((id) => move(switchLifecycle, id, "rack_ended", { ifPossible: true })),
    ...workSet.machines.map((id) => move(hostReprovisionLifecycle, id, "rack_ended", { ifPossible: true })),
  ];
}
