import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { isPrintable } from "../../kernel/printable.ts";
import { actionCommand } from "../../lifecycles/fleet-node/actions.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import { jobStateOf } from "../../runs/model/job-state.ts";
import { isActive, type Run } from "../../runs/model/run.ts";
import { FLEET_RUN_TYPES } from "../../runs/workflows/fleet/words.ts";
import { type FleetNodeRecord, listNodes } from "../../store/fleet/nodes.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { applyVerb } from "../../store/lifecycle/verbs.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { listRuns } from "../../store/run/runs.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { refusal } from "../catalog/entries.ts";
import { cancelInTransaction } from "../run/cancel.ts";
import { findNode } from "./find-node.ts";
import { nodeKey, runKey } from "./jobs.ts";
import { switchOn } from "./node-power.ts";

export interface NodeVerb {
  /** Its id or host name. */
  readonly node: string;
  /** Why, for the history. */
  readonly comment: string;
}

const LONGEST_COMMENT = 1_024;

export function checkComment(text: string, isRequired = false): string {
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
export async function lockNode(tx: Transaction, id: string, more: readonly string[] = []): Promise<Locked> {
  await lockThings(tx, [nodeKey(id), ...more.map(runKey)]);
  const [node] = await listNodes(tx, { ids: [id] });
  if (!node) throw new AppError("not_found", `fleet node ${id} does not exist`, { next: "millwright fleet list" });
  const [job] = await listRuns(tx, { target: nodeKey(id), limit: 1 });
  return { node, job };
}

export const moveNode = (
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
    await moveNode(tx, deps, caller, { id, name: "quarantine", comment, data: { reason: comment } });
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
    refuseUnproven(locked);
    await moveNode(tx, deps, caller, { id, name: "recover", comment });
  });
}

/** What was never brought up has nothing to recover to: it would be given away as it is. */
function refuseUnproven({ node: { id, hostname, mode, facts, state }, job }: Locked): void {
  if (state.name !== "quarantined") return;
  const refuse = (why: string, next: string) =>
    new AppError("failed_precondition", `fleet node ${hostname} cannot be recovered: ${why}`, { field: "node", next });
  if (!job && mode === "manual" && facts.enrollment?.consumedAt === null)
    throw refuse("nobody has enrolled as it", `millwright fleet bootstrap reissue ${id}`);
  if (job?.type !== FLEET_RUN_TYPES.fleet_onboarding) return;
  const is = jobStateOf(job);
  if (is !== "completed" && is !== "reconciled")
    throw refuse(`its onboarding, run ${job.id}, is ${is}`, actionCommand(id, "rerun"));
}

/** Takes a retired node back into the fleet, under the identity that it has kept: offline, until it is heard of. One that is off is switched on. */
export async function reactivateNode(deps: ServiceDeps, caller: Caller, input: NodeVerb): Promise<void> {
  const comment = checkComment(input.comment);
  const node = await findNode(deps.db, input.node);
  const { id } = node;
  if (node.state.name === "retired") await switchOn(deps, node);
  await deps.db.transaction(async (tx) => {
    const locked = await lockNode(tx, id);
    refuseWhileActive(locked, "reactivated");
    await moveNode(tx, deps, caller, { id, name: "reactivate", comment });
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
    await moveNode(tx, deps, caller, { id, name, comment });
  });
}
