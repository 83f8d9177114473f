import { AppError } from "../../kernel/errors.ts";
import { isPrintable } from "../../kernel/printable.ts";
import { actionCommand } from "../../lifecycles/fleet-node/actions.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import { jobStateOf } from "../../runs/model/job-state.ts";
import { isActive, type Run } from "../../runs/model/run.ts";
import { FLEET_RUN_TYPES } from "../../runs/workflows/fleet/words.ts";
import { type FleetNodeRecord, listNodes } from "../../store/fleet/nodes.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { applyVerb } from "../../store/lifecycle/verbs.ts";
import type { Queryable, Transaction } from "../../store/postgres/database.ts";
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

export interface Locked {
  readonly node: FleetNodeRecord;
  readonly job: Run | undefined;
}

export type Verb = "quarantine" | "recover" | "reactivate" | "abort_drain" | "rollback_removal" | "retire";

/** The node under its lock, with its latest run. */
export async function lockNode(tx: Transaction, id: string, more: readonly string[] = []): Promise<Locked> {
  await lockThings(tx, [nodeKey(id), ...more.map(runKey)]);
  return readNode(tx, id);
}

/** The same without its lock: true at this moment. */
export async function readNode(db: Queryable, id: string): Promise<Locked> {
  const [node] = await listNodes(db, { ids: [id] });
  if (!node) throw new AppError("not_found", `fleet node ${id} does not exist`, { next: "millwright fleet list" });
  const [job] = await listRuns(db, { target: nodeKey(id), limit: 1 });
  return { node, job };
}

export const moveNode = (
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  { id, name, comment }: { readonly id: string; readonly name: Verb; readonly comment: string },
) =>
  applyVerb(tx, deps.stores, {
    ...{ kind: fleetNodeLifecycle.kind, id, ...doneBy(caller) },
    ...happeningOf(name, comment),
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

/** What has to be so before operators move a node by hand, and whether there is anything to do: false where the node is so already. */
export const MOVES = {
  quarantine: (now: Locked, comment: string): boolean => {
    const { state, facts } = now.node;
    if (state.name === "quarantined" && facts.quarantineReason === comment) return false;
    refuseWhileActive(now, "quarantined");
    return true;
  },
  recover: (now: Locked): boolean => {
    if (now.node.state.name === "active") return false;
    refuseWhileActive(now, "recovered");
    refuseUnproven(now);
    return true;
  },
  reactivate: (now: Locked): boolean => {
    refuseWhileActive(now, "reactivated");
    return true;
  },
} as const satisfies Partial<Record<Verb, (now: Locked, comment: string) => boolean>>;

/** As the table is told of a move: a quarantine keeps the comment as its reason. */
export const happeningOf = (name: Verb, comment: string) => ({
  ...({ owner: "caller", name } as const),
  ...(comment !== "" && { message: comment }),
  ...(name === "quarantine" && { data: { reason: comment } }),
});

async function moveByHand(
  deps: ServiceDeps,
  caller: Caller,
  { id, name, comment }: { readonly id: string; readonly name: keyof typeof MOVES; readonly comment: string },
): Promise<void> {
  await deps.db.transaction(async (tx) => {
    if (MOVES[name](await lockNode(tx, id), comment)) await moveNode(tx, deps, caller, { id, name, comment });
  });
}

/** Keeps the node from being scheduled on. Its reason stays until somebody recovers it. */
export async function quarantineNode(deps: ServiceDeps, caller: Caller, input: NodeVerb): Promise<void> {
  const comment = checkComment(input.comment, true);
  const { id } = await findNode(deps.db, input.node);
  await moveByHand(deps, caller, { id, name: "quarantine", comment });
}

/** Lifts the quarantine of a node that is healthy again. Asking again is harmless. */
export async function recoverNode(deps: ServiceDeps, caller: Caller, input: NodeVerb): Promise<void> {
  const comment = checkComment(input.comment);
  const { id } = await findNode(deps.db, input.node);
  await moveByHand(deps, caller, { id, name: "recover", comment });
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
  await moveByHand(deps, caller, { id, name: "reactivate", comment });
}

/** Ends a drain short of retirement: by a cancel of its job, which brings the node back, or at once where no job is under way. */
export const abortDrain = (deps: ServiceDeps, caller: Caller, input: NodeVerb): Promise<void> =>
  leave(deps, caller, input, "abort_drain");

/** Ends a removal: the node is retired again. */
export const rollbackRemoval = (deps: ServiceDeps, caller: Caller, input: NodeVerb): Promise<void> =>
  leave(deps, caller, input, "rollback_removal");

const LEFT = { abort_drain: "draining", rollback_removal: "removing" } as const;

/** Of a node that its job leads out of service: the move is the cancel of that job. */
export const isByCancel = ({ node, job }: Locked, name: keyof typeof LEFT): boolean =>
  node.state.name === LEFT[name] && job !== undefined && isActive(job.phase);

async function leave(deps: ServiceDeps, caller: Caller, input: NodeVerb, name: keyof typeof LEFT): Promise<void> {
  const comment = checkComment(input.comment);
  const { id } = await findNode(deps.db, input.node);
  const [before] = await listRuns(deps.db, { target: nodeKey(id), limit: 1 });
  await deps.db.transaction(async (tx) => {
    const locked = await lockNode(tx, id, before ? [before.id] : []);
    const { node, job } = locked;
    if (job && job.id !== before?.id)
      throw new AppError("conflict", `fleet node ${node.hostname} has a new job, run ${job.id}; call again`);
    if (job && isByCancel(locked, name)) return cancelInTransaction(tx, deps, caller, job.id);
    await moveNode(tx, deps, caller, { id, name, comment });
  });
}
