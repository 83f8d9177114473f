import type { ClusterRight } from "../../capabilities/clusters/access.ts";
import { AppError } from "../../kernel/errors.ts";
import { holds } from "../../lifecycles/machine/conditions.ts";
import { type Machine, needsEndpoints } from "../../lifecycles/machine/machine.ts";
import type { Plan, Step } from "../../runs/model/plan/plan.ts";
import { clusterNameOf } from "../../runs/model/targets.ts";
import { type ClusterVerdict, givesKubeconfig, nameRights } from "../catalog/cluster-gate.ts";
import type { RunDeps } from "./deps.ts";

/** Tries clusters that are on record, by their names. One that is not on record is not in the answer. */
export interface ClusterProbes {
  verdictsOf(names: readonly string[]): Promise<ReadonlyMap<string, ClusterVerdict>>;
}

interface RunOn {
  readonly machine: Machine;
  readonly plan: Plan;
}

interface NeededCluster {
  readonly step: Step;
  readonly name: string;
  readonly rights: readonly ClusterRight[];
}

const TO_FIND: readonly ClusterRight[] = ["list_nodes"];
const TO_JOIN: readonly ClusterRight[] = ["list_nodes", "mint_tokens", "read_cluster_info"];

/** The clusters that steps work with, and what they do there. Of fake machines nothing is called. */
function clustersOf({ steps }: Pick<RunDeps, "steps">, { machine, plan }: RunOn): NeededCluster[] {
  if (!needsEndpoints(machine.spec)) return [];
  return plan.steps.flatMap((step) => {
    const kind = steps.get(step.kind);
    const refs = (kind?.refersTo(step.payload) ?? []).filter((reference) => reference.kind === "cluster");
    const rights = kind?.joinsCluster ? TO_JOIN : TO_FIND;
    return refs.map(({ ref }) => ({ step, name: clusterNameOf(ref, machine), rights }));
  });
}

/** Those that a run would need and nobody has tried for it yet. */
export function clustersToProbe(
  deps: Pick<RunDeps, "steps" | "clusterProbes">,
  run: RunOn,
  known: ReadonlyMap<string, ClusterVerdict>,
): string[] {
  if (deps.clusterProbes === null) return [];
  return [...new Set(clustersOf(deps, run).map(({ name }) => name))].filter((name) => !known.has(name));
}

export const tryClusters = async (
  { clusterProbes }: Pick<RunDeps, "clusterProbes">,
  names: readonly string[],
): Promise<ReadonlyMap<string, ClusterVerdict>> => (await clusterProbes?.verdictsOf(names)) ?? new Map();

/** So often the machine's clusters may change while they are being tried. */
const MOST_PROBES = 3;

/**
 * Clusters are tried outside of the transaction that starts a run, since they may take seconds to answer: a start that needs them
 * (`checkClusters`) is put off until they have been. One that repeats an earlier start needs none.
 */
export async function startOnTriedClusters<T>(
  deps: Pick<RunDeps, "clusterProbes">,
  machineId: string,
  start: (verdicts: ReadonlyMap<string, ClusterVerdict>) => Promise<T>,
): Promise<T> {
  const verdicts = new Map<string, ClusterVerdict>();
  for (let probes = 0; ; probes += 1) {
    try {
      return await start(verdicts);
    } catch (error) {
      if (!(error instanceof UntriedClusters)) throw error;
      if (probes === MOST_PROBES)
        throw new AppError("conflict", `machine ${machineId}: its cluster changes meanwhile; start the run again`);
      const found = await tryClusters(deps, error.names);
      // One that is not on record is refused by its name, as what the plan refers to.
      for (const name of error.names) verdicts.set(name, found.get(name) ?? { is: "open", missing: [] });
    }
  }
}

/** No refusal to a caller. */
class UntriedClusters extends AppError {
  readonly names: readonly string[];
  constructor(names: readonly string[]) {
    super("conflict", `clusters are to be tried first: ${names.join(", ")}`);
    this.names = names;
  }
}

/** Within `startOnTriedClusters`. */
export function checkClusters(
  deps: Pick<RunDeps, "steps" | "clusterProbes">,
  run: RunOn,
  verdicts: ReadonlyMap<string, ClusterVerdict>,
): void {
  const [elsewhere] = refuseJoinElsewhere(deps, run);
  if (elsewhere) throw elsewhere;
  const untried = clustersToProbe(deps, run, verdicts);
  if (untried.length > 0) throw new UntriedClusters(untried);
  const [shut] = refuseClusters(deps, run, verdicts);
  if (shut) throw shut;
}

/**
 * Why the run would fail at a cluster: it would find out only after it has overwritten the machine's disk. A cluster that does not
 * answer now is no reason to refuse, since steps wait for it.
 */
export function refuseClusters(
  deps: Pick<RunDeps, "steps">,
  run: RunOn,
  verdicts: ReadonlyMap<string, ClusterVerdict>,
): AppError[] {
  return eachClusterOnce(deps, run).flatMap(({ step, name, rights }) => {
    const verdict = verdicts.get(name);
    if (verdict?.is === "shut")
      return refusal(name, `step ${step.name} cannot use cluster ${name}: ${verdict.message}`);
    const missing = verdict?.is === "open" ? rights.filter((right) => verdict.missing.includes(right)) : [];
    if (missing.length === 0) return [];
    const lacks = `the user of its kubeconfig may not ${nameRights(missing)}`;
    return refusal(name, `step ${step.name} cannot use cluster ${name}: ${lacks}`);
  });
}

const refusal = (name: string, why: string): AppError =>
  new AppError("failed_precondition", why, { field: "machine_id", next: givesKubeconfig(name) });

/** For people who look before they start. */
export const nameSilentClusters = (
  deps: Pick<RunDeps, "steps">,
  run: RunOn,
  verdicts: ReadonlyMap<string, ClusterVerdict>,
): string[] =>
  eachClusterOnce(deps, run).flatMap(({ step, name }) => {
    const verdict = verdicts.get(name);
    return verdict?.is === "silent" ? [`step ${step.name} would wait for its cluster: ${verdict.message}`] : [];
  });

/** The run takes the machine to another cluster, and its node stays where it is: a node that nobody reports for. */
export function nameNodeLeftBehind(deps: Pick<RunDeps, "steps">, run: RunOn): string[] {
  const { machine, plan } = run;
  const before = machine.facts.joinedCluster;
  const joins = plan.steps.filter(({ kind }) => deps.steps.get(kind)?.joinsCluster);
  const to = joins.map(({ payload }) => clusterNameOf(String(payload.cluster_ref ?? ""), machine)).at(-1);
  if (before === null || to === undefined || to === before || !holds(machine.conditions, "InCustomerCluster"))
    return [];
  return [
    `machine ${machine.id} is a node of cluster ${before}, and the run joins it to ${to}: its node in ${before} stays, and must be ` +
      `deleted there; millwright machine enter-maintenance ${machine.id} empties it first`,
  ];
}

/**
 * kubeadm joins no machine that has joined already: without a new system, or a script that takes it from its cluster first, the run
 * could only wait for a node that never comes.
 */
export function refuseJoinElsewhere({ steps: kinds }: Pick<RunDeps, "steps">, { machine, plan }: RunOn): AppError[] {
  const before = machine.facts.joinedCluster;
  if (before === null || !holds(machine.conditions, "InCustomerCluster")) return [];
  const first = plan.steps.findIndex(({ kind }) => kinds.get(kind)?.joinsCluster);
  const step = plan.steps[first];
  if (step === undefined) return [];
  const to = clusterNameOf(String(step.payload.cluster_ref ?? ""), machine);
  const mayLeave = plan.steps.slice(0, first).some(({ kind }) => kind === "ssh" || kinds.get(kind)?.replacesSystem);
  if (to === before || mayLeave) return [];
  return [
    new AppError(
      "failed_precondition",
      `machine ${machine.id} is a node of cluster ${before}: step ${step.name} cannot join it to ${to} as well; repave it, or take it from ${before} first (kubeadm reset, then kubectl delete node)`,
      { field: "machine_id", next: `millwright run preview --machine ${machine.id} --type REPAVE` },
    ),
  ];
}

/** With the first of its steps, and all that steps do there. */
function eachClusterOnce(deps: Pick<RunDeps, "steps">, run: RunOn): NeededCluster[] {
  const byName = Map.groupBy(clustersOf(deps, run), ({ name }) => name);
  return [...byName.values()].map((needs) => ({
    ...(needs[0] as NeededCluster),
    rights: [...new Set(needs.flatMap(({ rights }) => rights))],
  }));
}
