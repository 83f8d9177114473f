import { AppError, messageOf, wrongField } from "../../kernel/errors.ts";
import { type Machine, targetClusterOf } from "../../lifecycles/machine/machine.ts";
import type { Plan } from "../../runs/model/plan/plan.ts";
import { DEFAULT_PLANS, type RunType } from "../../runs/model/plan/run-types.ts";
import type { AnyStep } from "../../runs/model/step.ts";
import { clusterNameOf, type Reference } from "../../runs/model/targets.ts";
import type { Runbooks } from "../../runs/steps/scripts/runbooks.ts";
import { type CloudInitRow, cloudInitTable } from "../../store/catalog/cloud-init.ts";
import { clusterTable } from "../../store/catalog/clusters.ts";
import { imageTable } from "../../store/catalog/images.ts";
import { listWorkflows } from "../../store/install/workflows.ts";
import type { Queryable, Transaction } from "../../store/postgres/database.ts";
import type { KnownScripts, ScriptVersion } from "../../store/run/script-texts.ts";

export interface ReferenceDeps {
  readonly steps: ReadonlyMap<string, AnyStep>;
  readonly runbooks: Pick<Runbooks, "find" | "findVersion" | "refs" | "refresh">;
}

interface Named extends Reference {
  readonly step: string;
}

interface RunOn {
  readonly machine: Machine;
  /** As it is, or would be, frozen into the run. */
  readonly plan: Plan;
  /** Those of a run that is being started: what is asked for, and the plan as its author wrote it. */
  readonly type?: RunType | "";
  readonly written?: Plan;
}

/**
 * Refuses a plan that names a cluster, an image or a script that is not there, or an upgrade of what is no node: a run would find
 * out only after it has changed the machine. Returns the digests of its scripts by their names, to be frozen into the run.
 */
export function checkReferences(known: KnownReferences, deps: ReferenceDeps, run: RunOn): Record<string, string> {
  const [refusal] = refuseReferences(known, deps, run);
  if (refusal) throw refusal;
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

export type KnownReferences = Readonly<Record<Reference["kind"], ReadonlySet<string>>> & {
  /** What the documents say, by their names. */
  readonly documents: ReadonlyMap<string, string>;
};

const findersIn = (db: Queryable): Finders => ({
  cluster: (names) => clusterTable.list(db, { names }),
  image: (names) => imageTable.list(db, { names }),
  workflow: (ids) => workflowNames(db, ids),
  cloud_init: (names) => cloudInitTable.list(db, { names }),
});

/** Of all that the plans name, what is there: one query a kind, however many runs there are. */
export const findReferences = (db: Queryable, deps: ReferenceDeps, runs: readonly RunOn[]): Promise<KnownReferences> =>
  lookUp(deps, runs, findersIn(db));

/** The same for runs that are about to refer to it: none of it can be deleted before they are on record. */
export const holdReferences = (
  tx: Transaction,
  deps: ReferenceDeps,
  runs: readonly RunOn[],
): Promise<KnownReferences> =>
  lookUp(deps, runs, {
    cluster: (names) => clusterTable.hold(tx, names),
    image: (names) => imageTable.hold(tx, names),
    // A workflow that is deleted meanwhile is no longer offered, and stays what it was.
    workflow: (ids) => workflowNames(tx, ids),
    cloud_init: (names) => cloudInitTable.hold(tx, names),
  });

const workflowNames = async (db: Queryable, ids: readonly string[]) =>
  (await listWorkflows(db, { ids, activeOnly: true })).map(({ id }) => ({ name: id }));

/** What a plan names and is not there: for people who keep a plan before they keep what it needs. */
export async function findMissing(db: Queryable, deps: ReferenceDeps, plan: Plan): Promise<string[]> {
  const named = plan.steps.flatMap((step) =>
    (deps.steps.get(step.kind)?.refersTo(step.payload) ?? []).map((reference) => ({ step: step.name, ...reference })),
  );
  const trouble = troubleWithScripts(deps, named);
  const known = await findNamed(deps, named, findersIn(db));
  const missing = named
    .filter(({ kind, ref }) => ref !== "" && !known[kind].has(ref))
    .map(
      ({ step, kind, ref }) => `step ${step} names the ${CALLED[kind]} ${JSON.stringify(ref)}, which is not there yet`,
    );
  return [...(trouble === undefined ? [] : [trouble]), ...missing];
}

type Find = (names: readonly string[]) => Promise<readonly { readonly name: string }[]>;

type Finders = Readonly<Record<Exclude<Reference["kind"], "script">, Find>> & {
  readonly cloud_init: (names: readonly string[]) => Promise<readonly CloudInitRow[]>;
};

const lookUp = (deps: ReferenceDeps, runs: readonly RunOn[], find: Finders): Promise<KnownReferences> =>
  lookUpNamed(
    deps,
    runs.flatMap((run) => referencesOf(deps, run)),
    find,
  );

async function lookUpNamed(deps: ReferenceDeps, named: readonly Named[], find: Finders): Promise<KnownReferences> {
  const trouble = troubleWithScripts(deps, named);
  if (trouble !== undefined) throw new AppError("failed_precondition", trouble, { next: "millwright config check" });
  return findNamed(deps, named, find);
}

async function findNamed(deps: ReferenceDeps, named: readonly Named[], find: Finders): Promise<KnownReferences> {
  const known = async <T extends { readonly name: string }>(
    kind: keyof Finders,
    ask: (names: readonly string[]) => Promise<readonly T[]>,
  ) => {
    const refs = [...new Set(named.filter((one) => one.kind === kind).map(({ ref }) => ref))];
    return refs.length === 0 ? [] : ask(refs);
  };
  const namesOf = (rows: readonly { readonly name: string }[]) => new Set(rows.map(({ name }) => name));
  const documents = await known("cloud_init", find.cloud_init);
  return {
    cluster: namesOf(await known("cluster", find.cluster)),
    image: namesOf(await known("image", find.image)),
    workflow: namesOf(await known("workflow", find.workflow)),
    cloud_init: namesOf(documents),
    documents: new Map(documents.map(({ name, content }) => [name, content])),
    script: new Set(deps.runbooks.refs),
  };
}

/**
 * Reads the scripts again: they are taken as they are on disk when somebody asks, and not as they were when the server was started.
 * Returns why they cannot be used; those that were read before are then still known.
 */
export function troubleWithScripts(
  { runbooks }: { readonly runbooks: Pick<Runbooks, "refresh"> },
  named: readonly Pick<Reference, "kind">[] = [{ kind: "script" }],
): string | undefined {
  if (!named.some(({ kind }) => kind === "script")) return undefined;
  try {
    runbooks.refresh();
    return undefined;
  } catch (error) {
    return `the scripts of scripts.directory cannot be used: ${messageOf(error)}`;
  }
}

/** What is frozen into a run, one by one. */
export const versionsOf = (scripts: Readonly<Record<string, string>>): ScriptVersion[] =>
  Object.entries(scripts).map(([ref, digest]) => ({ ref, digest }));

/** What this process has read from files. */
export const versionIn =
  ({ runbooks }: Pick<ReferenceDeps, "runbooks">): KnownScripts =>
  ({ ref, digest }) =>
    runbooks.findVersion(ref, digest);

/** The documents that a run refers to, for its own copies. */
export const documentsOf = (known: KnownReferences, deps: ReferenceDeps, run: RunOn): ReadonlyMap<string, string> =>
  new Map(
    referencesOf(deps, run)
      .filter(({ kind }) => kind === "cloud_init")
      .map(({ ref }) => [ref, known.documents.get(ref) ?? ""]),
  );

/** One refusal for each that is not there, in the order of the steps; and one where the machine is not in the cluster that is. */
export function refuseReferences(known: KnownReferences, deps: ReferenceDeps, run: RunOn): AppError[] {
  const missing = referencesOf(deps, run).filter(({ kind, ref }) => !known[kind].has(ref));
  return [
    ...missing.map((one) => (isLeftOpen(one, run) ? hasNoCluster(one, run) : unknown(one, deps.runbooks.refs))),
    ...refuseUpgrade(known, run),
  ];
}

function unknown({ step, kind, ref }: Named, scripts: readonly string[]): AppError {
  const what = `step ${step} names the ${CALLED[kind]} ${JSON.stringify(ref)}, which is not there`;
  return kind === "script"
    ? wrongField("plan_id", `${what}; known: ${scripts.join(", ")}`)
    : wrongField("plan_id", `${what}; create it first, or choose another plan`, {
        next: `millwright ${kind.replace("_", "-")} list`,
      });
}

const CALLED: Readonly<Record<Reference["kind"], string>> = {
  cluster: "cluster",
  image: "image",
  script: "script",
  workflow: "install workflow",
  cloud_init: "cloud-init document",
};

/** Neither the step nor the machine says which cluster is meant. */
const isLeftOpen = ({ step, kind, ref }: Named, { machine, written }: RunOn): boolean =>
  kind === "cluster" &&
  machine.spec.targetCluster === null &&
  ref === targetClusterOf(machine) &&
  written?.steps.find(({ name }) => name === step)?.payload.cluster_ref === "";

const hasNoCluster = ({ step, ref }: Named, { machine: { id } }: RunOn): AppError =>
  clusterRefusal(
    id,
    `machine ${id} has no cluster of its own, and ${JSON.stringify(ref)}, which step ${step} then means, is not there: give it spec.target_cluster_ref`,
  );

/**
 * An upgrade is of a node. On a machine that is in no cluster its scripts find nothing to do, and only its last step, after all its
 * attempts, that there is no node. Refused is only what somebody has seen: a machine that nobody has looked at yet may be one.
 */
function refuseUpgrade(known: KnownReferences, { machine, plan, type }: RunOn): AppError[] {
  if (type !== "UPGRADE" && !(type === "" && plan.planId === DEFAULT_PLANS.UPGRADE)) return [];
  const own = clusterNameOf("", machine);
  const isOfOwn = plan.steps.some(({ kind, payload }) => kind === "verify" && payload.cluster_ref === own);
  const brings = plan.steps.some(({ kind }) => kind === "join" || kind === "repave");
  const seen = machine.conditions.find((condition) => condition.type === "InCustomerCluster");
  if (!isOfOwn || brings || !known.cluster.has(own) || seen === undefined || seen.status) return [];
  const why = seen.message || seen.reason;
  return [
    clusterRefusal(
      machine.id,
      `machine ${machine.id} is not in cluster ${own} (${why}), and an upgrade is of a node: have it joined first, as REPAVE does, ` +
        "which installs it again; or give spec.target_cluster_ref the cluster that it is in",
    ),
  ];
}

const clusterRefusal = (id: string, why: string): AppError =>
  new AppError("failed_precondition", why, {
    field: "machine_id",
    next: `millwright machine update ${id} --cluster <name>`,
  });
