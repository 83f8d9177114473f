import { type Ending, endRun } from "./end-run.ts";
import type { RunThing } from "./lifecycle.ts";
import type { StepStatus } from "./run.ts";
import type { RunContext } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";
import { takeBackForGood } from "./take-back.ts";

/**
 * The end of a run that did not come to where it should. What its proven steps have set for the next boot is taken back: else a
 * machine would boot from the network the next time that anybody restarts it, whenever that is.
 */
export async function endUnwell(
  run: RunThing,
  phase: "FAILED" | "CANCELED",
  context: RunContext,
  log: RunLog,
  ending: Ending,
): Promise<ReturnType<typeof endRun>> {
  const { steps = run.facts.steps, residue = [] } = ending;
  const armed = new Set(steps.filter((visit) => isArmed(visit, steps, context)));
  // Who only looks has set nothing, and takes nothing back that people have.
  if (armed.size === 0 || run.action === "adopt") return endRun(run, phase, context, log, ending);
  const left: string[] = [];
  for (const { name, evidence } of armed) {
    const end = await takeBackForGood({ run, step: name, evidence: evidence ?? {} }, context, log);
    if (end.left !== null) left.push(end.left);
  }
  return endRun(run, phase, context, log, {
    ...ending,
    residue: [...residue, ...left],
    // Also where nobody answered to it: done again, the step asks first whether it is still in force.
    steps: steps.map((visit) => (armed.has(visit) ? { ...visit, takenBack: true } : visit)),
  });
}

/** Set by a run for the next boot, and no step has restarted the machine since. */
const isArmed = (visit: StepStatus, visits: readonly StepStatus[], { steps }: RunContext): boolean =>
  visit.state === "SUCCEEDED" &&
  visit.actingAt !== null &&
  !visit.takenBack &&
  steps.get(visit.kind)?.forNextBoot === true &&
  !visits
    .slice(visits.indexOf(visit) + 1)
    .some(({ kind, state }) => state === "SUCCEEDED" && steps.get(kind)?.reboots === true);
