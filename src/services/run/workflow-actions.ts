import { AppError } from "../../kernel/errors.ts";
import { jobStateOf } from "../../runs/model/job-state.ts";
import { isActive, type Run } from "../../runs/model/run.ts";
import { WORKFLOW_ACTIONS, type WorkflowAction } from "../../runs/workflows/actions.ts";
import { inheritStages } from "../../runs/workflows/next-attempt.ts";
import type { Workflow } from "../../runs/workflows/workflow.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf, type ThingKey } from "../../store/lifecycle/things.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { findOnTarget } from "../../store/run/runs.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { cancelRun } from "./cancel.ts";
import { checkRunRequestId, createRun, fingerprintOf, newRunId, sameRequest } from "./creation.ts";
import type { RunDeps } from "./deps.ts";
import { checkLatest, loadRun } from "./latest-attempt.ts";
import { getRun } from "./read.ts";
import { checkRunId } from "./start-checks.ts";
import { checkTarget, factsOfWorkflowRun, workflowOf } from "./workflow-starts.ts";

const KIND = "run";
const runKey = (id: string) => ({ kind: KIND, id });

export interface ActOnJob {
  /** What the caller calls the action, for a refusal; absent: as `millwright run` does. */
  readonly called?: string;
  readonly runId: string;
  readonly requestId: string;
}

/**
 * Makes the next attempt at a job of a workflow, once for a request, whatever races. A job that goes on by itself is resumed without
 * effect, so that whoever is not sure whether it was lost may always ask.
 */
export async function actOnWorkflow(
  deps: RunDeps,
  caller: Caller,
  action: WorkflowAction,
  input: ActOnJob,
): Promise<Run> {
  const { requestId } = input;
  const runId = checkRunId(input.runId);
  checkRunRequestId(requestId);
  const { target } = await getRun(deps, runId); // a run never changes its target
  const fingerprint = fingerprintOf([action, runId]);
  const newId = newRunId();
  const id = await deps.db.transaction(async (tx) => {
    await lockThings(tx, [target, runKey(runId), runKey(newId)]);
    const known = await findOnTarget(tx, { target, requestId });
    if (known) return sameRequest(known, { requestId, fingerprint });
    const previous = await loadRun(tx, runId);
    await checkLatest(tx, previous, action);
    if (action === "resume" && isActive(previous.phase)) return runId;
    const workflow = workflowOf(deps, previous.plan);
    checkActions(workflow, previous, action);
    checkState(previous, action, input.called);
    await checkTarget(tx, deps, target);
    await follow(tx, deps, caller, { previous, action, workflow, id: newId, requestId, fingerprint });
    return newId;
  });
  return getRun(deps, id);
}

interface Following {
  readonly previous: Run;
  readonly action: WorkflowAction;
  readonly workflow: Workflow;
  readonly id: string;
  readonly requestId: string;
  readonly fingerprint: string;
}

async function follow(tx: Transaction, deps: RunDeps, caller: Caller, following: Following): Promise<void> {
  const { previous, action, workflow, id, requestId, fingerprint } = following;
  const { target, type, plan, params } = previous;
  const inherited = inheritStages(previous, action, workflow);
  const canceledAt = action === "cancel" ? nowOf(deps) : null;
  await createRun(tx, deps, caller, {
    ...{ id, target, requestId, fingerprint, type, plan, params, canceledAt },
    facts: factsOfWorkflowRun(inherited),
    next: { of: previous, action },
  });
  await recordChange(tx, storeOf(deps.stores, KIND), {
    id: previous.id,
    ...doneBy(caller),
    type: "continued",
    reason: `${action} as ${id}`,
    data: { action, run: id },
    set: { next_run_id: id },
    touchesBasis: false, // it has ended: nobody works on it
  });
}

/**
 * A run that another run or a thing started has no job of its own: once it has ended, its starter has gone on, and a further attempt
 * would work without that one's claims and end where nobody waits for it. A workflow may refuse all but cancel as well.
 */
export function checkActions(
  { kind, onlyCancel }: Workflow,
  run: Pick<Run, "id" | "parent" | "holder">,
  action: WorkflowAction | "mark_manual",
): void {
  const starter = starterOf(run);
  if (starter) {
    const message = `run ${run.id} was started by ${starter.kind} ${starter.id} and can only be canceled while it is active`;
    throw new AppError("failed_precondition", message, { next: `millwright explain ${starter.kind} ${starter.id}` });
  }
  if (onlyCancel !== true || action === "cancel") return;
  const message = `run ${run.id} of workflow ${kind} can only be canceled; a new request does the work again`;
  throw new AppError("failed_precondition", message, { next: `millwright run show ${run.id}` });
}

const starterOf = ({ id, parent, holder }: Pick<Run, "id" | "parent" | "holder">): ThingKey | undefined => {
  if (parent) return runKey(parent.runId);
  return holder.id === id ? undefined : holder;
};

function checkState(run: Run, action: WorkflowAction, called?: string): void {
  const { of, command } = WORKFLOW_ACTIONS[action];
  const state = jobStateOf(run) ?? "pending";
  if (of.includes(state)) return;
  const next = isActive(run.phase) ? `millwright run cancel ${run.id}` : `millwright run show ${run.id}`;
  const message = `the job of run ${run.id} is ${state}: ${called ?? command} is for jobs that are ${of.join(" or ")}`;
  throw new AppError("failed_precondition", message, { next });
}

/**
 * Ends the job: an active run as ever, and a failed job of a workflow by an attempt that undoes what those before it did. A failed
 * run of a plan is refused: it holds nothing, and what it left is listed.
 */
export async function cancelJob(deps: RunDeps, caller: Caller, input: ActOnJob): Promise<Run> {
  checkRunRequestId(input.requestId);
  const run = await getRun(deps, checkRunId(input.runId));
  const isToBeUndone = run.plan.workflow !== undefined && run.phase === "FAILED";
  return isToBeUndone ? actOnWorkflow(deps, caller, "cancel", input) : cancelRun(deps, caller, run.id);
}
