import { AppError } from "../kernel/errors.ts";
import type { Machine } from "../lifecycles/machine/machine.ts";
import type { Plan } from "../runs/plan.ts";
import type { Runbooks } from "../runs/runbooks.ts";
import type { AnyStep } from "../runs/step.ts";
import { clusterNameOf, type Reference } from "../runs/targets.ts";
import { listClusters } from "../store/clusters.ts";
import type { Queryable } from "../store/database.ts";
import { listImages } from "../store/images.ts";

export interface ReferenceDeps {
  readonly steps: ReadonlyMap<string, AnyStep>;
  readonly runbooks: Pick<Runbooks, "find" | "refs">;
}

interface Named extends Reference {
  readonly step: string;
}

interface RunOn {
  readonly machine: Machine;
  readonly plan: Plan;
}

/**
 * Refuses a plan that names a cluster, an image or a script that is not there: a run would find out only after it has changed
 * the machine. Returns the digests of its scripts by their names, to be frozen into the run.
 */
export function checkReferences(known: KnownReferences, deps: ReferenceDeps, run: RunOn): Record<string, string> {
  const [missing] = unknownReferences(known, deps, run);
  if (missing) throw missing;
  const scripts = referencesOf(deps, run).filter(({ kind }) => kind === "script");
  return Object.fromEntries(scripts.map(({ ref }) => [ref, deps.runbooks.find(ref)?.digest ?? ""]));
}

const referencesOf = ({ steps }: ReferenceDeps, { machine, plan }: RunOn): Named[] =>
  plan.steps.flatMap((step) =>
    (steps.get(step.kind)?.refersTo(step.payload) ?? []).map(({ kind, ref }) => ({
      step: step.name,
      kind,
      ref: kind === "cluster" ? clusterNameOf(ref, machine) : ref,
    })),
  );

export type KnownReferences = Readonly<Record<Reference["kind"], ReadonlySet<string>>>;

/** Of all that the plans name, what is there: two queries however many runs there are. */
export async function findReferences(
  db: Queryable,
  deps: ReferenceDeps,
  runs: readonly RunOn[],
): Promise<KnownReferences> {
  const named = runs.flatMap((run) => referencesOf(deps, run));
  const refs = (kind: Reference["kind"]) => [
    ...new Set(named.filter((one) => one.kind === kind).map(({ ref }) => ref)),
  ];
  const [clusters, images] = [refs("cluster"), refs("image")];
  return {
    cluster: new Set(
      clusters.length === 0 ? [] : (await listClusters(db, { names: clusters })).map(({ name }) => name),
    ),
    image: new Set(images.length === 0 ? [] : (await listImages(db, { names: images })).map(({ name }) => name)),
    script: new Set(deps.runbooks.refs),
  };
}

/** One refusal for each that is not there, in the order of the steps. */
export const unknownReferences = (known: KnownReferences, deps: ReferenceDeps, run: RunOn): AppError[] =>
  referencesOf(deps, run)
    .filter(({ kind, ref }) => !known[kind].has(ref))
    .map((missing) => unknown(missing, deps.runbooks.refs));

function unknown({ step, kind, ref }: Named, scripts: readonly string[]): AppError {
  const what = `plan_id: step ${step} names the ${kind} ${JSON.stringify(ref)}, which is not there`;
  return kind === "script"
    ? new AppError("invalid_argument", `${what}; known: ${scripts.join(", ")}`, { field: "plan_id" })
    : new AppError("invalid_argument", `${what}; create it first, or choose another plan`, {
        field: "plan_id",
        next: `millwright ${kind} list`,
      });
}
