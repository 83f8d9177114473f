import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { residueFacts } from "../../kernel/residue.ts";
import { stepJson } from "../../runs/model/lifecycle.ts";
import type { Plan } from "../../runs/model/plan/plan.ts";
import type { Run } from "../../runs/model/run.ts";
import type { RunTarget } from "../../runs/targets/run-target.ts";
import { allWorkflows } from "../../runs/workflows/index.ts";
import type { StageInheritance } from "../../runs/workflows/next-attempt.ts";
import { planOfWorkflow, type Workflow } from "../../runs/workflows/workflow.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { findOnTarget, listRuns } from "../../store/run/runs.ts";
import type { Caller } from "../call/caller.ts";
import { checkRunRequestId, createRun, fingerprintOf, newRunId, sameRequest } from "./creation.ts";
import type { RunDeps } from "./deps.ts";
import { getRun } from "./read.ts";
import { hasActiveRun } from "./start-checks.ts";

const KIND = "run";

/** The workflow of a run, which an older or newer server may have started. */
export function workflowOf(
  { workflows = allWorkflows }: Pick<RunDeps, "workflows">,
  { workflow: kind = "" }: Pick<Plan, "workflow">,
): Workflow {
  const workflow = workflows.get(kind);
  if (workflow) return workflow;
  throw new AppError("unsupported", `this server does not know workflow ${kind}; another version of it may`);
}

export interface StartWorkflow {
  readonly workflow: string;
  readonly target: RunTarget;
  readonly requestId: string;
  readonly params?: Readonly<Record<string, string>>;
  /** By stage. */
  readonly payloads?: { readonly [stage: string]: JsonObject };
}

/**
 * Starts a job of a workflow on a thing, or returns the run that the same request started before, under any race. On a machine it
 * takes the machine's run slot, as a run of a plan does; any other thing has one active run of its own.
 */
export async function startWorkflow(deps: RunDeps, caller: Caller, input: StartWorkflow): Promise<Run> {
  const { target, requestId, params = {}, payloads = {} } = input;
  checkRunRequestId(requestId);
  const workflow = workflowOf(deps, input);
  const plan = planOfWorkflow(workflow, deps.steps, { payloads });
  const fingerprint = fingerprintOf([workflow.kind, Object.entries(params).sort(), payloads]);
  const newId = newRunId();
  const id = await deps.db.transaction(async (tx) => {
    await lockThings(tx, [target, { kind: KIND, id: newId }]);
    const known = await findOnTarget(tx, { target, requestId });
    if (known) return sameRequest(known, { requestId, fingerprint });
    await checkTarget(tx, deps, target);
    const run = { id: newId, target, requestId, fingerprint, type: "", plan, params, facts: {} };
    await createRun(tx, deps, caller, run);
    return newId;
  });
  return getRun(deps, id);
}

/** The target is there and can take a run now. The database refuses a second active run as well; here the other one has a name. */
export async function checkTarget(tx: Transaction, deps: RunDeps, target: RunTarget): Promise<void> {
  const { load, takesRuns } = storeOf(deps.stores, target.kind);
  const { things } = await load(tx, [target.id]);
  const [thing] = things;
  if (!thing) throw new AppError("not_found", `${target.kind} ${target.id} does not exist`);
  const [conflict] = takesRuns?.whyNoRun?.(thing) ?? [];
  if (conflict) throw conflict;
  const [other] = await listRuns(tx, { target, activeOnly: true, limit: 1 });
  if (other) throw hasActiveRun(target, other.id);
}

/** What says nothing is not kept. */
export function factsOfWorkflowRun(inherited: StageInheritance): JsonObject {
  const { steps, takeBackFirst, doneBefore, compensateFirst, residue } = inherited;
  return {
    ...(steps.length > 0 && { steps: steps.map(stepJson) }),
    ...(takeBackFirst && { takeBackFirst: { ...takeBackFirst } }),
    ...(doneBefore.length > 0 && { doneBefore: doneBefore.map((one) => ({ ...one })) }),
    ...(compensateFirst && { compensateFirst: { ...compensateFirst } }),
    ...(residue.length > 0 && residueFacts(residue)),
  };
}
