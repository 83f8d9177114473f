import type { RunThing } from "../model/lifecycle.ts";
import type { RunEnd } from "./target-kind.ts";

/** Kinds of steps by which a run replaces the firmware of its target: by itself, or by the job of a rack manager that it follows. */
export const WRITES_FIRMWARE: ReadonlySet<string> = new Set(["update_firmware", "follow_firmware_job"]);

/** Begun by others before the run was there: that none of its own steps has acted proves nothing. */
const BEGUN_BY_OTHERS = "follow_firmware_job";

/**
 * Somebody ended the run before any of its steps acted: the device is as it was, and nothing has failed. A step announces that it acts
 * before it does, in a commit of its own, so that a crash in between counts as written.
 */
export const wroteNothing = (
  { plan, facts }: Pick<RunThing, "plan" | "facts">,
  { phase }: Pick<RunEnd, "phase">,
): boolean =>
  phase === "CANCELED" &&
  plan.steps.every(({ kind }) => kind !== BEGUN_BY_OTHERS) &&
  facts.steps.every(({ actingAt }) => actingAt === null);
