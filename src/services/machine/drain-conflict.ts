import { holds } from "../../lifecycles/machine/conditions.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import type { Plan, Step } from "../../runs/model/plan/plan.ts";

/** The shipped script that refuses to have a node taken away from under what runs on it. */
const DRAIN_CHECK = "drain_check.sh";

/**
 * Why a step that checks for it would fail, where it is known that the machine's node is not drained. For people who look before
 * they start: who starts the run all the same is told by the machine itself, which may have been emptied by then.
 */
export function findDrainConflicts(machine: Machine, { steps }: Pick<Plan, "steps">): string[] {
  const step = steps.find(checksDrain);
  const drained = machine.conditions.find(({ type }) => type === "Drained");
  if (step === undefined || drained === undefined || drained.status) return [];
  if (!holds(machine.conditions, "InCustomerCluster")) return [];
  const why = drained.reason === "PodsRemain" ? drained.message : `${drained.message || "its node"} takes work`;
  return [`machine ${machine.id} is not drained (${why}), so step ${step.name} would fail; ${whatHelps(machine)}`];
}

function checksDrain({ kind, payload }: Step): boolean {
  const { script_ref, args } = payload;
  const isForced = typeof args === "object" && args !== null && "force" in args && args.force === "true";
  return kind === "ssh" && script_ref === DRAIN_CHECK && !isForced;
}

function whatHelps({ id, state }: Machine): string {
  if (state.drain === true) return "wait until the machine is Drained";
  const enter = `millwright machine enter-maintenance ${id}`;
  return state.name === "MAINTENANCE" ? `millwright machine exit-maintenance ${id}, then ${enter}` : enter;
}
