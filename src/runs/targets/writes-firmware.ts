import type { RunThing } from "../model/lifecycle.ts";
import { areAllProven, describeWritten, type StepLeft } from "./left-by-steps.ts";
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

/** What came of firmware that a run was to write: proven also where somebody ended the run after its last proof. */
export function outcomeOfFirmware(
  { plan, facts }: Pick<RunThing, "plan" | "facts">,
  { phase, message }: Pick<RunEnd, "phase" | "message">,
): { readonly isProven: boolean; readonly message: string } {
  if (phase !== "CANCELED") return { isProven: phase === "SUCCEEDED", message };
  const left = stepsLeft({ plan, facts });
  if (areAllProven(left)) return { isProven: true, message };
  const written = describeWritten(left);
  return {
    isProven: false,
    message: message || ["the upgrade was ended", written].filter((text) => text !== "").join(": "),
  };
}

const stepsLeft = ({ plan, facts }: Pick<RunThing, "plan" | "facts">): readonly StepLeft[] =>
  plan.steps.map(({ name, kind, payload }) => {
    const visit = facts.steps.findLast((each) => each.name === name);
    const text = (value: unknown) => (typeof value === "string" ? value : null);
    return {
      kind,
      component: text(payload.component),
      version: text(payload.version),
      activation: text(payload.activation),
      state: visit?.state ?? null,
      isBegun: visit !== undefined && visit.actingAt !== null,
      verdict: visit?.verdict ?? "",
    };
  });
