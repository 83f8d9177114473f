import { type Effect, move } from "../../kernel/effects.ts";
import { workAlert } from "../../lifecycles/host-reprovision/handlers.ts";
import type { HostReprovision } from "../../lifecycles/host-reprovision/host-reprovision.ts";
import { hostReprovisionLifecycle } from "../../lifecycles/host-reprovision/lifecycle.ts";
import { rackLifecycle } from "../../lifecycles/rack/lifecycle.ts";
import type { RunThing } from "../model/lifecycle.ts";
import type { RunEnd, TargetKind } from "./target-kind.ts";
import { outcomeOfFirmware, WRITES_FIRMWARE, wroteNothing } from "./writes-firmware.ts";

/** What came of the firmware of a tray, whoever had it written. */
function outcomeOf(run: Pick<RunThing, "target" | "plan" | "facts">, end: RunEnd): Effect {
  const { isProven, message } = outcomeOfFirmware(run, end);
  return move(hostReprovisionLifecycle, run.target.id, isProven ? "firmware_proven" : "firmware_failed", {
    ifPossible: true,
    data: { at: end.at.toISOString(), ...(end.cause && { failure: end.cause }) },
    ...(message !== "" && { message }),
  });
}

/** A run that writes firmware to a tray on behalf of its rack: only the rack itself can be its holder. */
const isFlashOfRack = ({ holder, plan }: RunThing): boolean =>
  holder.kind === rackLifecycle.kind && plan.steps.some(({ kind }) => WRITES_FIRMWARE.has(kind));

/** The tray follows what its rack does: with the start of the run, since the run may be over before any pass could see it. */
export const whenRackFlashes = (run: RunThing): Effect[] =>
  isFlashOfRack(run)
    ? [
        move(hostReprovisionLifecycle, run.target.id, "rack_requested", {
          ifPossible: true,
          data: { rack: run.holder.id, run: run.id },
        }),
      ]
    : [];

export function whenRackHasFlashed(run: RunThing, end: RunEnd): Effect[] {
  if (!isFlashOfRack(run)) return [];
  // A failed tray would try again by itself what somebody has just ended.
  if (wroteNothing(run, end))
    return [move(hostReprovisionLifecycle, run.target.id, "rack_ended", { ifPossible: true })];
  return [outcomeOf(run, end)];
}

/** The run of a tray's own upgrade: its end is the end of the tray's work, and of the alert that told others to keep away. */
export const hostReprovisionTarget: TargetKind<HostReprovision> = {
  kind: hostReprovisionLifecycle.kind,
  whenStarted: () => [],
  whenEnded: (run, end) => [outcomeOf(run, end), workAlert(run.target.id, null)],
  signInRemedy: ({ id }) => `millwright machine set-credentials ${id} gives others`,
};
