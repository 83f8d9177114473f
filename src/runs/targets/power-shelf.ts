import { powerShelfLifecycle } from "../../lifecycles/power-shelf/lifecycle.ts";
import type { PowerShelf } from "../../lifecycles/power-shelf/power-shelf.ts";
import type { TargetKind } from "./target-kind.ts";

/** A run on a shelf does not change the shelf's state: the run's own claim keeps others off. */
export const powerShelfTarget: TargetKind<PowerShelf> = {
  kind: powerShelfLifecycle.kind,
  whenStarted: () => [],
  whenEnded: () => [],
  signInRemedy: ({ id }) => `millwright power-shelf set-credentials ${id} gives others`,
};
