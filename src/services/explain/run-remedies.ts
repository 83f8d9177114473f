import { holds } from "../../lifecycles/machine/conditions.ts";
import type { Run } from "../../runs/run.ts";
import type { MachineView } from "../machine-view.ts";
import { type NextCommand, say } from "./explanation.ts";
import { machineRemedies } from "./machine-remedies.ts";
import type { SeenRun } from "./run.ts";

/** What puts right why a run failed, before it is done once more; the most helpful first. */
export function runRemedies({ run, cause, trouble, machine }: SeenRun): NextCommand[] {
  switch (cause) {
    case "not_drained":
      return machine === undefined ? [] : drainFirst(machine);
    case "net_refused":
    case "net_reverted":
      return [withOtherSettings(run)];
    default:
      return machineRemedies(cause, run.machineId, trouble);
  }
}

/** Nobody asks for a drain but by entering maintenance, where a failed run has put the machine without asking for one. */
function drainFirst({ machine, phase }: MachineView): NextCommand[] {
  const { id, conditions, state } = machine;
  if (holds(conditions, "Drained")) return [];
  const enter = say(`machine enter-maintenance ${id}`, "has its node cordoned and drained: Drained proves it");
  if (phase !== "MAINTENANCE") return [enter];
  if (state.drain === true)
    return [
      say(`machine show ${id}`, "shows what is left on its node, which is being drained: retry once it is Drained"),
    ];
  const acknowledge = holds(conditions, "NeedsIntervention") ? " --acknowledge --comment <text>" : "";
  return [say(`machine exit-maintenance ${id}${acknowledge}`, "gives it back, so that it can be drained"), enter];
}

/** Whatever goes on with the run goes on with the settings that it has. */
const withOtherSettings = (run: Run): NextCommand =>
  say(
    startingAnew(run, { netplan: "<settings>" }),
    "starts anew with other settings: retry, resume and rerun keep those that the run has",
  );

/** Whatever follows the run waits for what it left; where that can never be taken back, only a job of its own begins. */
export function withoutTakingBack(run: Run): NextCommand[] {
  if (run.takeBackFirst === null) return [];
  const isGone = "begins without taking anything back: for what will never answer again";
  return [say(startingAnew(run), isGone)];
}

function startingAnew({ machineId, type, plan, params }: Run, instead: Readonly<Record<string, string>> = {}): string {
  const what = type === "" ? `--plan ${plan.planId}` : `--type ${type}`;
  const kept = Object.entries(params).filter(([name, value]) => !(name in instead) && /^[\w.:-]+$/.test(value));
  const given = [...Object.entries(instead), ...kept].map(([name, value]) => ` --param ${name}=${value}`);
  return `run start --machine ${machineId} ${what}${given.join("")}`;
}
