import { type Duration, milliseconds } from "../../kernel/time/duration.ts";
import type { Machine, MachinePhase } from "../../lifecycles/machine/machine.ts";
import type { NewChild } from "../../runs/children/child-run.ts";
import type { Step } from "../../runs/model/plan/plan.ts";
import { phaseOnSuccess } from "../../runs/targets/machine-after-run.ts";
import { findLiveNodes } from "../../store/fleet/nodes.ts";
import { list as listClaims } from "../../store/lifecycle/claims/claims.ts";
import { machineStore } from "../../store/machine/machines.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import { readStepDurations } from "../../store/run/step-durations.ts";
import { findMediaConflicts, findSeedConflicts } from "../install/seed-checks.ts";
import { findDrainConflicts } from "../machine/drain-conflict.ts";
import { machineKey } from "../machine/machines.ts";
import {
  clustersToProbe,
  nameNodeLeftBehind,
  nameSilentClusters,
  refuseClusters,
  refuseJoinElsewhere,
  tryClusters,
} from "./cluster-checks.ts";
import { findCredentials, findMissingCredentials } from "./credentials.ts";
import type { RunDeps } from "./deps.ts";
import { disturbedCluster, findTypeContradictions, nameSilentSystem } from "./hazards.ts";
import { findPlan } from "./plans.ts";
import { findReferences, refuseReferences } from "./references.ts";
import {
  checkMachineId,
  chooseRun,
  findMissingEndpoints,
  findMomentConflicts,
  findNeeds,
  imagesIn,
} from "./start-checks.ts";
import type { StartRun } from "./starts.ts";

export interface PreviewedStep {
  readonly step: Step;
  readonly needs: readonly string[];
  readonly reboots: boolean;
  /** Undefined: no such step was proved yet. */
  readonly expectedDuration: Duration | undefined;
  /** The runs that it would start on other things, as these are now: the step settles them only when it begins. */
  readonly children: readonly NewChild[];
}

export interface RunPreview {
  readonly planId: string;
  readonly steps: readonly PreviewedStep[];
  readonly missingCapabilities: readonly string[];
  /** Why StartRun would refuse, or the run wait, or fail for what is known of the machine. */
  readonly conflicts: readonly string[];
  readonly reboots: number;
  /** Undefined unless it is known of every step. */
  readonly expectedDuration: Duration | undefined;
  readonly phaseOnSuccess: MachinePhase;
  /** What is accepted although it may not be meant. */
  readonly warnings: readonly string[];
  /** Empty where the run disturbs nothing that serves. */
  readonly disturbsCluster: string;
}

/**
 * What StartRun would do, without doing it: it only reads. Refuses what StartRun would refuse whatever the moment; what
 * stands in the way only now is listed.
 */
export async function previewRun(deps: RunDeps, input: Omit<StartRun, "requestId">): Promise<RunPreview> {
  const { db } = deps;
  const machineId = checkMachineId(input.machineId);
  const chosen = await chooseRun(
    { ...input, machineId },
    {
      steps: deps.steps,
      findPlan: (id) => findPlan(db, id),
      findMachine: async (id) => (await machineStore.load(db, [id])).things[0],
      findFleetNode: async (id) => (await findLiveNodes(db, [id])).get(id),
    },
  );
  const { machine, plan } = chosen;
  const can: ReadonlySet<string> = deps.capabilitiesOf(machine.spec);
  const durationOf = await readStepDurations(db, { planId: plan.planId, provider: machine.spec.provider });
  const needs = await findNeeds(imagesIn(db), deps, chosen);
  const steps = plan.steps.map((step) => ({
    step,
    needs: needs.get(step)?.capabilities ?? [],
    reboots: deps.steps.get(step.kind)?.reboots ?? false,
    expectedDuration: durationOf(step)?.median,
    children: deps.steps.get(step.kind)?.children?.(machine, step.payload) ?? [],
  }));
  const known = await findReferences(db, deps, [chosen]);
  const credentials = await findCredentials(db, deps, [{ machine, needs }]);
  const verdicts = await tryClusters(deps, clustersToProbe(deps, chosen, new Map()));
  const ofMedia = await findMediaConflicts(deps, { machine, needs });
  const refusals = [
    ...findMomentConflicts(machine),
    ...findMissingEndpoints(machine, needs),
    ...findMissingCredentials(credentials, { machine, needs }),
    ...refuseReferences(known, deps, chosen),
    ...refuseJoinElsewhere(deps, chosen),
    ...refuseClusters(deps, chosen, verdicts),
    ...findSeedConflicts(deps, { machine, needs }, known.documents),
    ...ofMedia,
  ];
  return {
    planId: plan.planId,
    steps,
    missingCapabilities: [...new Set([...needs.values()].flatMap(({ capabilities }) => capabilities))].filter(
      (need) => !can.has(need),
    ),
    conflicts: [
      ...refusals.map(({ message }) => message),
      ...(await findHolders(db, machine)),
      ...findDrainConflicts(machine, plan),
      ...nameNodeLeftBehind(deps, chosen),
      ...nameSilentClusters(deps, chosen, verdicts),
    ],
    reboots: steps.filter(({ reboots }) => reboots).length,
    expectedDuration: sum(steps.map(({ expectedDuration }) => expectedDuration)),
    phaseOnSuccess: phaseOnSuccess(plan, deps.steps) ?? phaseBefore(machine),
    warnings: [...findTypeContradictions(chosen), ...nameSilentSystem(chosen, input.params)],
    disturbsCluster: disturbedCluster(chosen, deps.steps),
  };
}

/** What the machine would be when the run begins: another that works on it now must end first. */
const phaseBefore = ({ state: { name, on_success } }: Machine): MachinePhase =>
  (name === "PROVISIONING" ? (on_success ?? "READY") : name) as MachinePhase;

/** Runs are refused for each other; for everybody else they wait, in the order in which they came. */
export async function findHolders(db: Queryable, machine: Pick<Machine, "id">): Promise<string[]> {
  const claims = await listClaims(db, [machineKey(machine.id)]);
  return claims
    .filter(({ holder }) => holder.kind !== "run")
    .map(
      ({ holder, reason, grantedAt }) =>
        `${holder.kind} ${holder.id} (${reason}) ${grantedAt === null ? "waits for" : "works on"} machine ${machine.id}: the run would be PENDING until its turn comes`,
    );
}

const sum = (durations: readonly (Duration | undefined)[]): Duration | undefined => {
  const known = durations.filter((each) => each !== undefined);
  return known.length < durations.length ? undefined : milliseconds(known.reduce((total, each) => total + each, 0));
};
