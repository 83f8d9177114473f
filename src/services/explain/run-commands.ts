import { holds } from "../../lifecycles/machine/conditions.ts";
import { isActive, machineOf } from "../../runs/model/run.ts";
import { type NextCommand, say } from "./explanation.ts";
import { machineRemedies } from "./machine-remedies.ts";
import type { SeenRun } from "./run.ts";
import { lastResort, runRemedies, withoutTakingBack } from "./run-remedies.ts";

/** What to do about a run, the most helpful first. */
export const runCommands = (seen: SeenRun): NextCommand[] =>
  isActive(seen.run.phase) ? whileActive(seen) : onceEnded(seen);

function whileActive({ run, pass, claims, trouble }: SeenRun): NextCommand[] {
  const { id, cancelRequestedAt } = run;
  const follow = say(`run logs ${id} --follow`, "follows the output of its steps");
  const cancel = say(`run cancel ${id}`, "ends it in bounded time, and lists what stays behind");
  const show = say(`run show ${id}`, "shows how far it is");
  if (cancelRequestedAt !== null) return [follow, show];
  if (claims.length > 0) return [show, cancel];
  const history = say(`history run ${id}`, "shows what happened to it");
  if (pass.isStranded || pass.lastError !== null)
    return [say("system", "shows which server answers, and whether it is healthy"), history, cancel];
  const machineId = machineOf(run);
  // A part of the work on its rack: people act on the machine, and not on the run.
  const remedies = run.target.kind === "machine" ? machineRemedies(trouble.cause, run.target.id) : [];
  if (machineId === null) return [...remedies, follow, show, cancel];
  const machine = say(`machine show ${machineId}`, "shows whether machine and BMC are reached");
  return [...remedies, follow, machine, cancel];
}

/** A run that was canceled before it began has not brought its machine into maintenance; what an earlier one calls for is still to be seen to. */
function giveBack({ machine }: SeenRun): NextCommand[] {
  if (machine?.phase !== "MAINTENANCE") return [];
  const { id, conditions } = machine.machine;
  const acknowledge = holds(conditions, "NeedsIntervention") ? " --acknowledge --comment <text>" : "";
  return [
    say(`machine exit-maintenance ${id}${acknowledge}`, "leaves it as it is, and returns the machine to service"),
  ];
}

function onceEnded(seen: SeenRun): NextCommand[] {
  const { run, step, newer, trouble } = seen;
  const { id, machineId, phase, manual } = run;
  const logs = say(`run logs ${id}`, "shows the output of its steps");
  if (newer)
    return [
      say(`explain run ${newer.id}`, `explains the run of the ${run.target.kind} that came after this one`),
      logs,
    ];
  // Nobody acts on a part of somebody else's work: that one is asked for again.
  if (machineId === null)
    return seen.parts ? [say(`run show ${id}`, "shows the runs that it has started"), logs] : [logs];
  if (phase === "SUCCEEDED") return [say(`machine show ${machineId}`, "shows the machine"), logs];
  const resume = say(`run resume ${id}`, "goes on where it stopped; checks first whether the step is done");
  const rerun = say(`run rerun ${id}`, "repeats everything, from the first step");
  if (phase === "CANCELED") return [resume, rerun, ...giveBack(seen), logs];
  const retry = say(`run retry ${id}`, "repeats the failed step and goes on, once its cause is fixed");
  const adopt = say(`run adopt ${id}`, "accepts the step as done, if a probe proves it");
  const takeOver = say(`run mark-manual ${id} --comment <text>`, "records that a person takes over");
  // What goes on by the scripts of then is refused: those are gone.
  if (trouble.cause?.code === "script_changed") {
    const takeNew = say(
      `run retry ${id} --new-scripts`,
      "repeats the failed step and goes on, with the current scripts",
    );
    return [takeNew, rerun, logs, ...withoutTakingBack(run), takeOver];
  }
  const remedies = runRemedies(seen);
  // The person who fixed the cause may have done the step by hand: so it is probed before anything is done again.
  if (manual !== null || (step?.needsPerson && remedies.length === 0)) return [resume, adopt, logs, retry, rerun];
  return [...remedies, retry, logs, ...lastResort(seen), resume, rerun, ...withoutTakingBack(run), takeOver];
}
