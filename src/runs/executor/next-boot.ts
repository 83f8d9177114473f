import type { StepStatus } from "../model/run.ts";
import type { RunContext } from "./run-context.ts";

/** Whether a proven visit has set something for a restart that no step has brought about since. */
export const isForRestartToCome = (
  visit: StepStatus,
  visits: readonly StepStatus[],
  { steps }: Pick<RunContext, "steps">,
): boolean =>
  visit.state === "SUCCEEDED" &&
  steps.get(visit.kind)?.forNextBoot === true &&
  !visits
    .slice(visits.indexOf(visit) + 1)
    .some(({ kind, state }) => state === "SUCCEEDED" && steps.get(kind)?.reboots === true);
