import { AppError } from "../../kernel/errors.ts";
import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import type { FleetPolicy } from "../../lifecycles/fleet-node/policy.ts";
import { jobStateOf } from "../../runs/model/job-state.ts";
import type { JobState } from "../../runs/model/run.ts";
import { paramsOfJob, planOfJob } from "../../runs/workflows/fleet/plan-of-job.ts";
import { type DecommissionParam, FLEET_RUN_TYPES, type FleetWorkflow } from "../../runs/workflows/fleet/words.ts";
import { listProfiles } from "../../store/fleet/profiles.ts";
import { type FleetSite, fleetSites } from "../../store/fleet/sites.ts";
import type { Queryable, Transaction } from "../../store/postgres/database.ts";
import { listRuns } from "../../store/run/runs.ts";
import type { Caller } from "../call/caller.ts";
import { createRun } from "../run/creation.ts";
import type { RunDeps } from "../run/deps.ts";
import { workflowOf } from "../run/workflow-starts.ts";

export const nodeKey = (id: string) => ({ kind: fleetNodeLifecycle.kind, id });
export const runKey = (id: string) => ({ kind: "run", id });

export interface NewFleetJob {
  readonly id: string;
  readonly workflow: FleetWorkflow;
  readonly node: Pick<FleetNode, "id" | "mode" | "site" | "profile">;
  readonly requestId: string;
  readonly fingerprint: string;
  readonly mode?: DecommissionParam;
  /** What the choice of stages goes by besides. */
  readonly params?: Readonly<Record<string, string>>;
}

/** Starts a job on the node, as a part of what the caller does; the caller holds the locks of the node and of the run. */
export async function createFleetJob(tx: Transaction, deps: RunDeps, caller: Caller, job: NewFleetJob): Promise<void> {
  const { id, workflow: kind, node, requestId, fingerprint, mode, params = {} } = job;
  await refuseSecondJob(tx, node.id);
  const workflow = workflowOf(deps, { workflow: kind });
  const policy = await policyOf(tx, node);
  const made = { workflow, node, policy, ...(mode !== undefined && { mode }) };
  await createRun(tx, deps, caller, {
    ...{ id, target: nodeKey(node.id), requestId, fingerprint, facts: {} },
    type: FLEET_RUN_TYPES[kind],
    plan: planOfJob(made, deps.steps),
    params: { ...paramsOfJob(made), ...params },
  });
}

/** A node has one job at a time. */
export async function refuseSecondJob(db: Queryable, nodeId: string): Promise<void> {
  const [other] = await listRuns(db, { target: nodeKey(nodeId), activeOnly: true, limit: 1 });
  if (!other) return;
  throw new AppError(
    "failed_precondition",
    `fleet node ${nodeId} has an active job, run ${other.id}: wait for it or cancel it`,
    { next: `millwright fleet action ${nodeId} cancel` },
  );
}

/** As the profile has it now. */
export async function policyOf(
  db: Queryable,
  { site, profile }: Pick<FleetNode, "site" | "profile">,
): Promise<FleetPolicy> {
  const [known] = await listProfiles(db, { site, name: profile });
  if (known) return known.policy;
  throw new AppError("failed_precondition", `profile: fleet site ${site} has no profile ${profile}`, {
    field: "profile",
    next: `millwright fleet profile list --site ${site}`,
  });
}

/** The site cannot be removed until the end of the transaction, and may have new work. What leaves it may also where it is disabled. */
export async function holdSite(tx: Transaction, name: string, { evenDisabled = false } = {}): Promise<void> {
  const [site] = await fleetSites.hold(tx, [name]);
  checkSite(site, name, { evenDisabled });
}

/** Whether the site is there and may have work. */
export function checkSite(
  site: FleetSite | undefined,
  name: string,
  { evenDisabled = false } = {},
): asserts site is FleetSite {
  const refuse = (why: string, next: string) =>
    new AppError("failed_precondition", `site: fleet site ${name} ${why}`, { field: "site", next });
  if (!site) throw refuse("does not exist", "millwright fleet site list");
  if (!site.isEnabled && !evenDisabled)
    throw refuse("is disabled: nothing new is begun there", `millwright fleet site update ${name} --enable`);
}

/** The states of the onboardings of these nodes: of each the latest attempt. */
export async function onboardingsOf(db: Queryable, nodeIds: readonly string[]): Promise<ReadonlyMap<string, JobState>> {
  if (nodeIds.length === 0) return new Map();
  const sql = `t.target_kind = '${fleetNodeLifecycle.kind}' and t.target_id = any($1) and t.next_run_id is null
    and t.parent_run_id is null and t.type = $2`;
  const runs = await listRuns(db, { where: { sql, values: [nodeIds, FLEET_RUN_TYPES.fleet_onboarding] } });
  // The newest comes first, and counts.
  return new Map(runs.toReversed().flatMap((run) => [[run.target.id, jobStateOf(run) ?? "pending"] as const]));
}
