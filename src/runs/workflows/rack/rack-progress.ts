import type { MaintenanceStage } from "../../../lifecycles/rack/payloads.ts";
import type { ActivityKind, RackPhase } from "../../../lifecycles/rack/rack.ts";
import type { StepProgress } from "../../targets/target-kind.ts";

/** Which activity a rack is at, and how far: what its nested wire state says. A type and no interface, so that it is JSON to the compiler. */
export type RackProgress = { readonly activity: ActivityKind; readonly phase: RackPhase };

/** What each stage is on the wire: before it has begun anything, and from then on. One total map. */
// biome-ignore format: a table is read by its columns
const PROGRESS = {
  firmware_upgrade:      { activity: "firmware_upgrade",      entered: "start",        begun: "wait_for_complete" },
  configure_nmx_cluster: { activity: "configure_nmx_cluster", entered: "start",        begun: "wait_for_fabric_status" },
  power_off_compute:     { activity: "power_sequence",        entered: "powering_off", begun: "powering_off" },
  power_off_switches:    { activity: "power_sequence",        entered: "powering_off", begun: "powering_off" },
  power_on_shelves:      { activity: "power_sequence",        entered: "powering_on",  begun: "powering_on" },
  power_on_switches:     { activity: "power_sequence",        entered: "powering_on",  begun: "powering_on" },
  power_on_compute:      { activity: "power_sequence",        entered: "powering_on",  begun: "powering_on" },
} as const satisfies {
  readonly [stage in MaintenanceStage]: { readonly activity: ActivityKind; readonly entered: RackPhase; readonly begun: RackPhase };
};

/** Of a stage of `rack_maintenance`. */
export const activityOf = (stage: string): ActivityKind =>
  isStage(stage) ? PROGRESS[stage].activity : "power_sequence";

const isStage = (name: string): name is MaintenanceStage => Object.hasOwn(PROGRESS, name);

/** All that the steps have come through, in its order and each once; it begins with what a rack enters maintenance with. A skipped stage is none of it. */
export function progressOf(steps: readonly StepProgress[]): readonly RackProgress[] {
  const seen: RackProgress[] = [{ activity: "firmware_upgrade", phase: "start" }];
  for (const { name, state, isBegun } of steps) {
    if (!isStage(name) || state === "SKIPPED") continue;
    const { activity, entered, begun } = PROGRESS[name];
    const reached: readonly RackPhase[] = isBegun || state === "SUCCEEDED" ? [entered, begun] : [entered];
    for (const phase of reached)
      if (!seen.some((each) => each.activity === activity && each.phase === phase)) seen.push({ activity, phase });
  }
  return seen;
}
