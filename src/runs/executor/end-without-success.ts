import type { Residue } from "../../kernel/residue.ts";
import type { RunThing } from "../model/lifecycle.ts";
import { keyOfVisit, leftOf } from "../model/next-attempt.ts";
import type { StepStatus } from "../model/run.ts";
import { type Ending, endRun } from "./end.ts";
import { isForRestartToCome } from "./next-boot.ts";
import type { RunContext } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";
import * as visits from "./step/visit.ts";
import { undoFinally } from "./undo.ts";

/**
 * The end of a run that did not come to where it should. What its proven steps have set for a restart to come is undone: otherwise it
 * would take effect the next time that anybody restarts the target, whenever that is.
 */
export async function endWithoutSuccess(
  run: RunThing,
  phase: "FAILED" | "CANCELED",
  context: RunContext,
  log: RunLog,
  ending: Ending,
): Promise<ReturnType<typeof endRun>> {
  const { steps = run.facts.steps, residue = [], undone = [] } = ending;
  const armed = new Set(steps.filter((visit) => isArmed(visit, steps, context)));
  // Who only looks has set nothing, and takes nothing back that people have.
  if (armed.size === 0 || run.action === "adopt") return endRun(run, phase, context, log, ending);
  const left: Residue[] = [];
  const open = new Set<StepStatus>();
  for (const visit of armed) {
    const begun = leftOf(visit, visit.evidence ?? {}, visit.receipt);
    const end = await undoFinally({ run, ...begun }, context, log);
    if (end.left !== null) {
      log.staysBehind(end.left);
      left.push(end.left);
    }
    if (!end.isSettled) open.add(visit);
  }
  return endRun(run, phase, context, log, {
    ...ending,
    residue: [...residue, ...left],
    undone: [...undone, ...[...armed].filter((visit) => !open.has(visit)).map(keyOfVisit)],
    // Where nobody answered to it, the attempt after does so first: whoever acts then sets it again.
    steps: steps.map((visit) => (armed.has(visit) ? visits.takenBack(visit, { isSettled: !open.has(visit) }) : visit)),
  });
}

/** Set by a run, and not only found so; and not undone before. */
const isArmed = (visit: StepStatus, visits: readonly StepStatus[], context: RunContext): boolean =>
  visit.actingAt !== null && !visit.takenBack && isForRestartToCome(visit, visits, context);
