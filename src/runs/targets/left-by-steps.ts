import type { StepState } from "../model/run.ts";

/** How far one step of a run came that somebody ended; of its payload what firmware is told by. */
export interface StepLeft {
  readonly kind: string;
  readonly component: string | null;
  readonly version: string | null;
  readonly activation: string | null;
  /** Null: the run did not come to it. */
  readonly state: StepState | null;
  /** Its action was announced: something may have been done. */
  readonly isBegun: boolean;
  readonly verdict: string;
}

/** What the steps have written to a device, and what not; empty where they write no firmware one by one. */
export function describeWritten(steps: readonly StepLeft[]): string {
  const isActivated = (activation: string | null) =>
    activation === "none" ||
    steps.some((step) => step.kind === "activate_firmware" && step.activation === activation && isProven(step));
  return steps
    .flatMap((step) => {
      const { kind, component, version, activation, isBegun, verdict } = step;
      if (kind !== "update_firmware" || verdict === "unchanged") return [];
      const name = `${component} ${version}`;
      if (isProven(step))
        return `${name} is written${isActivated(activation) ? "" : ", but not in use before a restart"}`;
      return isBegun ? `${name} may be half written` : `${name} was not begun`;
    })
    .join(", ");
}

const isProven = ({ state }: StepLeft): boolean => state === "SUCCEEDED";

/** Every one of them was carried out: who ended the run came too late. */
export const areAllProven = (steps: readonly StepLeft[]): boolean => steps.length > 0 && steps.every(isProven);
