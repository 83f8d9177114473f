import { move } from "../../kernel/effects.ts";
import { switchLifecycle } from "../../lifecycles/switch/lifecycle.ts";
import type { Switch } from "../../lifecycles/switch/switch.ts";
import type { RunThing } from "../model/lifecycle.ts";
import type { TargetKind } from "./target-kind.ts";
import { outcomeOfFirmware, WRITES_FIRMWARE, wroteNothing } from "./writes-firmware.ts";

/**
 * A switch is reprovisioning while its rack replaces its firmware. All other runs leave its state alone. Whether the rack configures
 * the fabric afterwards is a param of the run, since only the rack knows.
 */
export const switchTarget: TargetKind<Switch> = {
  kind: switchLifecycle.kind,
  whenStarted(run) {
    if (!replacesForRack(run)) return [];
    const awaitsFabric = run.params.awaits_fabric === "true";
    const data = { rack: run.holder.id, run: run.id, awaitsFabric };
    return [move(switchLifecycle, run.target.id, "rack_requested", { data, ifPossible: true })];
  },
  whenEnded(run, end) {
    if (!replacesForRack(run)) return [];
    if (wroteNothing(run, end)) return [move(switchLifecycle, run.target.id, "rack_ended", { ifPossible: true })];
    const { isProven, message } = outcomeOfFirmware(run, end);
    const cause = isProven ? "firmware_proven" : "firmware_failed";
    const why = message === "" ? {} : { message };
    return [move(switchLifecycle, run.target.id, cause, { ...why, ifPossible: true })];
  },
};

const replacesForRack = ({ holder, plan }: RunThing): boolean =>
  holder.kind === "rack" && plan.steps.some(({ kind }) => WRITES_FIRMWARE.has(kind));
