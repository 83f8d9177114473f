import type { Cause } from "../../kernel/causes.ts";
import { holds } from "../../lifecycles/machine/conditions.ts";
import { DEFAULT_PLANS, findRunType } from "../../runs/model/plan/run-types.ts";
import { machineOf, type Run } from "../../runs/model/run.ts";
import type { MachineView } from "../machine/view.ts";
import { type NextCommand, say } from "./explanation.ts";
import { isSwitchedOff, resetByForce, seemsHung, switchOn } from "./machine-notes.ts";
import { machineRemedies } from "./machine-remedies.ts";
import type { SeenRun } from "./run.ts";

/** What puts right why a run failed, before it is done once more; the most helpful first. */
export function runRemedies(seen: SeenRun): NextCommand[] {
  const {
    run,
    machine,
    trouble: { cause },
  } = seen;
  const machineId = machineOf(run);
  if (machineId === null) return [];
  switch (cause?.code) {
    case "not_drained":
      return machine === undefined ? [] : drainFirst(machine);
    case "net_refused":
    case "net_reverted":
      return [withOtherSettings(run)];
    case "unreachable":
    case "timed_out":
      if (!isSilentOverSsh(cause)) return [];
      // As often as it is retried, nobody answers.
      if (machine !== undefined && isSwitchedOff(machine)) return [switchOn(machineId)];
      if (seen.step?.kind === "reboot")
        return cause?.facts?.progress === "running" && mayHang(seen) ? forcedAnew(seen) : [];
      if (checksDrainForReturn(seen)) return [notAskingDeadSystem(run)];
      return machine !== undefined && seemsHung(machine) === true ? [resetByForce(machineId)] : [];
    case "no_evidence":
      return forcedAnew(seen);
    case "no_effect":
      return mayHang(seen) ? forcedAnew(seen) : [];
    default:
      return machineRemedies(cause, machineId);
  }
}

/** A system that is heard of is not to be cut off by the first thing that people read. */
const mayHang = ({ machine }: SeenRun): boolean => machine === undefined || seemsHung(machine) !== false;

/** Nobody answers over SSH, as far as can be seen. */
export const isSilentOverSsh = (cause: Cause | null): boolean =>
  (cause?.code === "unreachable" || cause?.code === "timed_out") && cause.facts?.at === "ssh";

/** For a machine that does not answer over SSH, and of which nobody knows yet why; and for one whose system does not go down when asked to. */
export function lastResort(seen: SeenRun): NextCommand[] {
  const {
    machine,
    trouble: { cause },
  } = seen;
  if (cause?.code === "no_effect") return mayHang(seen) ? [] : forcedAnew(seen);
  return isSilentOverSsh(cause) && machine !== undefined && seemsHung(machine) === undefined
    ? [resetByForce(machine.machine.id)]
    : [];
}

/**
 * A restart that asked the system to go down, in vain: whatever goes on with the run asks it again. Begun anew where no more than the
 * boot source comes before; else what comes before would need the system that hangs, or be done twice, and the reset comes first.
 */
function forcedAnew({ run, step, machine }: SeenRun): NextCommand[] {
  const { steps } = run.plan;
  const at = steps.findIndex(({ name }) => name === step?.name);
  const planned = steps[at];
  if (planned?.kind !== "reboot" || planned.payload.force === true) return [];
  const isByBmc = planned.payload.mode !== "in_band";
  if (isByBmc && steps.slice(0, at).every(({ kind }) => kind === "netboot"))
    return [
      say(
        startingAnew(run, { force: "true" }),
        "resets it at once, without a shutdown: retry, resume and rerun would ask for a shutdown again",
      ),
    ];
  return isByBmc || machine?.machine.spec.bmc != null ? [resetByForce(machineOf(run) ?? "")] : [];
}

/** An RMA whose machine is no node of its cluster asks the machine itself, which may be what is to be returned. */
function checksDrainForReturn({ run, step }: SeenRun): boolean {
  const { steps } = run.plan;
  const planned = steps.find(({ name }) => name === step?.name);
  return planned?.payload.script_ref === "drain_check.sh" && steps.some(({ kind }) => kind === "rma");
}

const notAskingDeadSystem = (run: Run): NextCommand =>
  say(
    startingAnew(run, { force: "true" }),
    "returns a machine whose system is dead: its cluster is asked, and what only its system could answer is left out",
  );

/** Nobody asks for a drain but by entering maintenance, where a failed run has put the machine without asking for one. */
function drainFirst({ machine, phase }: MachineView): NextCommand[] {
  const { id, conditions, state } = machine;
  if (holds(conditions, "Drained")) return [];
  const enter = say(`machine enter-maintenance ${id}`, "cordons and drains its node: Drained proves it");
  if (phase !== "MAINTENANCE") return [enter];
  if (state.drain === true)
    return [
      say(`machine show ${id}`, "shows what is left on its node, which is being drained: retry once it is Drained"),
    ];
  const acknowledge = holds(conditions, "NeedsIntervention") ? " --acknowledge --comment <text>" : "";
  return [
    say(`machine exit-maintenance ${id}${acknowledge}`, "returns it to service, so that it can be drained"),
    enter,
  ];
}

/** Whatever goes on with the run goes on with the settings that it has. */
const withOtherSettings = (run: Run): NextCommand =>
  say(
    startingAnew(run, { netplan: "<settings>" }),
    "starts a new run with other settings: retry, resume and rerun keep the old ones",
  );

/** Whatever follows the run waits for what it left; where that can never be taken back, only a job of its own begins. */
export function withoutTakingBack(run: Run): NextCommand[] {
  if (run.takeBackFirst === null) return [];
  const isGone = "starts a new run that undoes nothing first: for a device that will never answer again";
  return [say(startingAnew(run), isGone)];
}

function startingAnew({ machineId, type, plan, params }: Run, instead: Readonly<Record<string, string>> = {}): string {
  const known = findRunType(type);
  const isOwnPlan = known !== undefined && DEFAULT_PLANS[known] === plan.planId;
  const what = [...(type === "" ? [] : [`--type ${type}`]), ...(isOwnPlan ? [] : [`--plan ${plan.planId}`])].join(" ");
  const kept = Object.entries(params).filter(([name, value]) => !(name in instead) && /^[\w.:-]+$/.test(value));
  const given = [...Object.entries(instead), ...kept].map(([name, value]) => ` --param ${name}=${value}`);
  return `run start --machine ${machineId} ${what}${given.join("")}`;
}
