import type { Thing } from "../../kernel/lifecycle.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import { powerShelfLifecycle } from "../../lifecycles/power-shelf/lifecycle.ts";
import { rackLifecycle } from "../../lifecycles/rack/lifecycle.ts";
import { switchLifecycle } from "../../lifecycles/switch/lifecycle.ts";
import { type RunThing, runLifecycle } from "../model/lifecycle.ts";
import type { Step } from "../model/plan/plan.ts";
import { activateFirmware } from "../steps/rack/activate-firmware.ts";
import { setDevicePower } from "../steps/rack/set-device-power.ts";
import { updateFirmware } from "../steps/rack/update-firmware.ts";
import type { RunTarget } from "./run-target.ts";

/** Trays talk through switches and are fed by shelves. */
const FEEDS_TRAYS: ReadonlySet<string> = new Set([switchLifecycle.kind, powerShelfLifecycle.kind]);
const CUTS_OFF: ReadonlySet<string> = new Set([updateFirmware.kind, activateFirmware.kind]);

/**
 * What nobody may use while the run works: the trays of the rack whose switch or shelf it cuts off, or the machine where its plan says
 * so. What works for a rack, or for a tray's own upgrade, has that in the claims of these.
 */
export function unusedDuring(run: Pick<RunThing, "target" | "holder" | "plan">): readonly RunTarget[] {
  const { target, holder, plan } = run;
  if (holder.kind !== runLifecycle.kind) return [];
  if (target.kind === machineLifecycle.kind) return plan.unlessInUse ? [{ kind: target.kind, id: target.id }] : [];
  const rackId = FEEDS_TRAYS.has(target.kind) ? rackOf(target.thing) : null;
  return rackId !== null && plan.steps.some(cutsOff) ? [{ kind: rackLifecycle.kind, id: rackId }] : [];
}

const cutsOff = ({ kind, payload }: Step): boolean =>
  CUTS_OFF.has(kind) || (kind === setDevicePower.kind && (payload as { desired?: unknown }).desired !== "on");

const rackOf = (thing: Thing | null): string | null =>
  (thing as { readonly rackId?: string | null } | null)?.rackId ?? null;
