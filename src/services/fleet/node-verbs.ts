import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { isPrintable } from "../../kernel/printable.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import { jobStateOf } from "../../runs/model/job-state.ts";
import { isActive, type Run } from "../../runs/model/run.ts";
import { DECOMMISSION_MODES, type DecommissionMode, FLEET_DECOMMISSION } from "../../runs/workflows/fleet/words.ts";
import { type FleetNodeRecord, listNodes } from "../../store/fleet/nodes.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { applyVerb } from "../../store/lifecycle/verbs.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { findOnTarget, listRuns } from "../../store/run/runs.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { refusal } from "../catalog/entries.ts";
import { cancelInTransaction } from "../run/cancel.ts";
import { checkRunRequestId, fingerprintOf, newRunId, sameRequest } from "../run/creation.ts";
import type { RunDeps } from "../run/deps.ts";
import { findNode } from "./find-node.ts";
import { createFleetJob, holdSite, nodeKey, runKey } from "./jobs.ts";

export interface NodeVerb {
  /** Its id or host name. */
  readonly node: string;
  /** Why, for the history. */
  readonly comment: string;
}

const LONGEST_COMMENT = 1_024;

function checkComment(text: string, isRequired = false): string {
  const comment = text.trim();
  if (isRequired && comment === "") throw refusal("comment", "is required: it says why, and stays with the node");
  if (comment.length <= LONGEST_COMMENT && isPrintable(comment)) return comment;
  throw refusal("comment", `must be printable, with at most ${LONGEST_COMMENT} characters`);
}

interface Locked {
  readonly node: FleetNodeRecord;
  readonly job: Run | undefined;
}

type Verb = "quarantine" | "recover" | "reactivate" | "abort_drain" | "rollback_removal" | "retire";

/** The node under its lock, with its latest run. */
async function lockNode(tx: Transaction, id: string, more: readonly string[] = []): Promise<Locked> {
  await lockThings(tx, [nodeKey(id), ...more.map(runKey)]);
  const [node] = await listNodes(tx, { ids: [id] });
  if (!node) throw new AppError("not_found", `fleet node ${id} does not exist`, { next: "millwright fleet list" });
  const [job] = await listRuns(tx, { target: nodeKey(id), limit: 1 });
  return { node, job };
}

const move = (
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  {
    id,
    name,
    comment,
    data,
  }: { readonly id: string; readonly name: Verb; readonly comment: string; readonly data?: JsonObject },
) =>
  applyVerb(tx, deps.stores, {
    ...{ kind: fleetNodeLifecycle.kind, id, owner: "caller", name, ...doneBy(caller) },
    ...(comment !== "" && { message: comment }),
    ...(data && { data }),
  });

/** What a job does with the node would undo what the caller asks, or the other way round. */
function refuseWhileActive({ node, job }: Locked, what: string): void {
  if (!job || !isActive(job.phase)) return;
  throw new AppError(
    "failed_precondition",
    `fleet node ${node.hostname} cannot be ${what}: its ${job.type || "job"}, run ${job.id}, is ${jobStateOf(job)}; cancel it first`,
    { field: "node", next: `millwright fleet action ${node.id} cancel` },
  );
}

/** Keeps the node from being scheduled on. Its reason stays until somebody recovers it. */
export async function quarantineNode(deps: ServiceDeps, caller: Caller, input: NodeVerb): Promise<void> {
  const comment = checkComment(input.comment, true);
  const { id } = await findNode(deps.db, input.node);
  await deps.db.transaction(async (tx) => {
    const locked = await lockNode(tx, id);
    if (locked.node.state.name === "quarantined" && locked.node.facts.quarantineReason === comment) return;
    refuseWhileActive(locked, "quarantined");
    await move(tx, deps, caller, { id, name: "quarantine", comment, data: { reason: comment } });
  });
}

/** Lifts the quarantine of a node that is healthy again. Asking again is harmless. */
export async function recoverNode(deps: ServiceDeps, caller: Caller, input: NodeVerb): Promise<void> {
  const comment = checkComment(input.comment);
  const { id } = await findNode(deps.db, input.node);
  await deps.db.transaction(async (tx) => {
    const locked = await lockNode(tx, id);
    if (locked.node.state.name === "active") return;
    refuseWhileActive(locked, "recovered");
    await move(tx, deps, caller, { id, name: "recover", comment });
  });
}

/** Takes a retired node back into the fleet, under the identity that it has kept: offline, until it is heard of. */
export async function reactivateNode(deps: ServiceDeps, caller: Caller, input: NodeVerb): Promise<void> {
  const comment = checkComment(input.comment);
  const { id } = await findNode(deps.db, input.node);
  await deps.db.transaction(async (tx) => {
    const locked = await lockNode(tx, id);
    refuseWhileActive(locked, "reactivated");
    await move(tx, deps, caller, { id, name: "reactivate", comment });
  });
}

/** Ends a drain short of retirement: by a cancel of its job, which brings the node back, or at once where no job is under way. */
export const abortDrain = (deps: ServiceDeps, caller: Caller, input: NodeVerb): Promise<void> =>
  leave(deps, caller, input, { from: "draining", name: "abort_drain" });

/** Ends a removal: the node is retired again. */
export const rollbackRemoval = (deps: ServiceDeps, caller: Caller, input: NodeVerb): Promise<void> =>
  leave(deps, caller, input, { from: "removing", name: "rollback_removal" });

async function leave(
  deps: ServiceDeps,
  caller: Caller,
  input: NodeVerb,
  { from, name }: { readonly from: string; readonly name: "abort_drain" | "rollback_removal" },
): Promise<void> {
  const comment = checkComment(input.comment);
  const { id } = await findNode(deps.db, input.node);
  const [before] = await listRuns(deps.db, { target: nodeKey(id), limit: 1 });
  await deps.db.transaction(async (tx) => {
    const { node, job } = await lockNode(tx, id, before ? [before.id] : []);
    if (job && job.id !== before?.id)
      throw new AppError("conflict", `fleet node ${node.hostname} has a new job, run ${job.id}; call again`);
    const isUnderWay = job !== undefined && isActive(job.phase);
    if (node.state.name === from && isUnderWay) return cancelInTransaction(tx, deps, caller, job.id);
    await move(tx, deps, caller, { id, name, comment });
  });
}

export interface Decommission {
  readonly node: string;
  readonly requestId: string;
  readonly mode: string;
}

/** Starts the decommission of a node, once for a request. */
export async function decommissionNode(deps: RunDeps, caller: Caller, input: Decommission): Promise<string> {
  const mode = DECOMMISSION_MODES.find((each) => each === input.mode);
  if (mode === undefined) throw refusal("mode", `must be one of ${DECOMMISSION_MODES.join(", ")}`);
  return startDecommission(deps, caller, { ...input, mode });
}

/** Drains the node and takes it out of scheduling: it is draining from now on, by the job that this starts. */
export const retireNode = (deps: RunDeps, caller: Caller, input: NodeVerb & Pick<Decommission, "requestId">) =>
  startDecommission(deps, caller, { ...input, mode: "retire" });

interface Starting extends Pick<Decommission, "node" | "requestId"> {
  readonly mode: DecommissionMode | "retire";
  readonly comment?: string;
}

async function startDecommission(deps: RunDeps, caller: Caller, input: Starting): Promise<string> {
  const { requestId, mode } = input;
  checkRunRequestId(requestId);
  const comment = checkComment(input.comment ?? "");
  const { id } = await findNode(deps.db, input.node);
  const fingerprint = fingerprintOf([FLEET_DECOMMISSION, mode, id]);
  const runId = newRunId();
  return deps.db.transaction(async (tx) => {
    const { node } = await lockNode(tx, id, [runId]);
    const known = await findOnTarget(tx, { target: nodeKey(id), requestId });
    if (known) return sameRequest(known, { requestId, fingerprint });
    checkMayDecommission(node, mode);
    await holdSite(tx, node.site, { evenDisabled: true });
    await createFleetJob(tx, deps, caller, {
      id: runId,
      workflow: FLEET_DECOMMISSION,
      node,
      requestId,
      fingerprint,
      mode,
    });
    // In the same commit: nobody is draining without a job that leads out.
    if (mode === "retire") await move(tx, deps, caller, { id, name: "retire", comment });
    return runId;
  });
}

const FROM: Readonly<Record<DecommissionMode | "retire", readonly string[]>> = {
  retire: ["active", "offline", "quarantined"],
  soft_reset: ["active", "offline", "quarantined"],
  storage_cleanup: ["active", "offline", "quarantined"],
  reimage: ["active", "offline", "quarantined", "retired"],
  full_decommission: ["active", "offline", "quarantined", "retired"],
};

function checkMayDecommission({ id, hostname, state }: FleetNodeRecord, mode: DecommissionMode | "retire"): void {
  if (FROM[mode].includes(state.name)) return;
  throw new AppError(
    "failed_precondition",
    `fleet node ${hostname} is ${state.name}: ${mode} is for nodes that are ${FROM[mode].join(", ")}`,
    { field: "node", next: `millwright fleet show ${id}` },
  );
}
