import { holds } from "../../lifecycles/machine/conditions.ts";
import { type Machine, type MachinePhase, ownClusterOf } from "../../lifecycles/machine/machine.ts";
import { servesCluster } from "../../lifecycles/machine/serving.ts";
import type { Plan, Step } from "../../runs/model/plan/plan.ts";
import { DEFAULT_PLANS, type RunType } from "../../runs/model/plan/run-types.ts";
import type { AnyStep } from "../../runs/model/step.ts";
import { isDrainCheck } from "../../runs/steps/facts/drain-answer.ts";

/** What StartRun accepts, and people may not mean. */

interface Started {
  readonly type: RunType | "";
  readonly plan: Plan;
}

/** These see to the node themselves: they drain it, or refuse one that is not drained. Another plan may not, whatever type is named. */
const DRAIN_FIRST: readonly string[] = [DEFAULT_PLANS.UPGRADE, DEFAULT_PLANS.RMA];

/** The cluster that the machine serves, if the run would cut off what runs there; empty otherwise. */
export function disturbedCluster(
  { machine, plan }: { readonly machine: Machine; readonly plan: Plan },
  steps: ReadonlyMap<string, Pick<AnyStep, "reboots" | "replacesSystem" | "interrupts">>,
): string {
  if (!servesCluster({ phase: machine.state.name as MachinePhase, conditions: machine.conditions })) return "";
  const disturbs = plan.steps.some(({ kind }) => {
    const { reboots, replacesSystem, interrupts } = steps.get(kind) ?? {};
    return reboots === true || replacesSystem === true || interrupts === true;
  });
  return disturbs && !DRAIN_FIRST.includes(plan.planId) ? ownClusterOf(machine) : "";
}

/** What goes before a return and needs the machine's own system, where that does not answer: a machine that is returned may be dead. */
export function nameSilentSystem(
  { machine, plan }: { readonly machine: Machine; readonly plan: Plan },
  params: Readonly<Record<string, string>>,
): string[] {
  const last = plan.steps.findIndex(({ kind }) => kind === "rma");
  const isSilent = machine.conditions.some(({ type, status }) => type === "Reachable" && !status);
  if (last < 0 || !isSilent) return [];
  const isForced = params.force === "true";
  const isNode = holds(machine.conditions, "InCustomerCluster");
  return plan.steps.slice(0, last).flatMap((step) => {
    const without = whatWithoutSystem(step, { isForced, isNode });
    return without === undefined
      ? []
      : [`machine ${machine.id} does not answer over SSH: step ${step.name} ${without}`];
  });
}

function whatWithoutSystem(
  { kind, payload }: Step,
  { isForced, isNode }: { readonly isForced: boolean; readonly isNode: boolean },
): string | undefined {
  if (kind === "ssh" && isDrainCheck(payload)) {
    if (isNode) return "asks its cluster instead";
    return isForced
      ? "is left out by force=true, unless a node of its cluster is this machine"
      : "would wait for it, unless a node of its cluster is this machine; params.force=true leaves out what only its system could answer";
  }
  if (kind === "ssh") return "would wait for it; params.force does not leave that out";
  if (kind === "reboot")
    return payload.mode === "in_band"
      ? "would wait for it: a reboot in band is for a system that runs"
      : "resets it through its BMC";
  return undefined;
}

/** The step by which a plan does what the type says. An upgrade has none: scripts do it, or a new image. */
const STEP_OF_TYPE: { readonly [type in RunType]?: string } = {
  REPAVE: "repave",
  RMA: "rma",
  REBOOT: "reboot",
  NET_RECONFIG: "net",
  JOIN: "join",
};

/** Steps that nobody expects who names another type. */
const GRAVE: readonly { readonly kind: string; readonly does: string; readonly types: readonly RunType[] }[] = [
  { kind: "repave", does: "installs another system", types: ["REPAVE", "UPGRADE"] },
  { kind: "rma", does: "takes the machine out of service", types: ["RMA"] },
];

/** Where the plan that is named does something else than the type says. */
export function findTypeContradictions({ type, plan }: Started): string[] {
  if (type === "") return [];
  const stepOf = (kind: string) => plan.steps.find((step) => step.kind === kind)?.name;
  const own = STEP_OF_TYPE[type];
  const missing = own !== undefined && stepOf(own) === undefined ? [`has no ${own} step`] : [];
  const grave = GRAVE.filter(({ types }) => !types.includes(type)).flatMap(({ kind, does }) => {
    const step = stepOf(kind);
    return step === undefined ? [] : [`${does} (step ${step})`];
  });
  return [...missing, ...grave].map((what) => `type ${type} contradicts plan ${plan.planId}: the plan ${what}`);
}
