import { createHash, randomUUID } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import type { Json, JsonObject } from "../../kernel/lifecycle.ts";
import { isPrintable } from "../../kernel/printable.ts";
import type { ParentStep } from "../../runs/children/child-run.ts";
import { stepJson } from "../../runs/model/lifecycle.ts";
import type { Inheritance } from "../../runs/model/next-attempt.ts";
import type { Plan } from "../../runs/model/plan/plan.ts";
import type { Run, RunAction } from "../../runs/model/run.ts";
import type { RunTarget } from "../../runs/targets/run-target.ts";
import { createAll, type NewThing } from "../../store/lifecycle/create.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { findByRequests } from "../../store/run/runs.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { actorOf, doneBy } from "../call/initiator.ts";

/** What StartRun and the actions on runs have in common: a run is made once for a request, however often it is asked for. */

const LONGEST_REQUEST_ID = 128;

export function checkRunRequestId(requestId: string): void {
  if (requestId.trim() !== "" && requestId.length <= LONGEST_REQUEST_ID && isPrintable(requestId)) return;
  const why = `1 to ${LONGEST_REQUEST_ID} printable characters are required, such as a UUID; the same again for the same request`;
  throw new AppError("invalid_argument", `request_id: ${why}`, { field: "request_id" });
}

export const newRunId = (): string => `run-${randomUUID()}`;

export const newJobId = (): string => `job-${randomUUID()}`;

/** By what a repeated request is told from another one under the same id. */
export const fingerprintOf = (asked: Json): string => createHash("sha256").update(JSON.stringify(asked)).digest("hex");

export interface RunRequest {
  readonly machineId: string;
  readonly requestId: string;
  readonly fingerprint: string;
}

/** The run that the same request made before; the caller holds the machine's lock. */
export async function findRepeated(tx: Transaction, request: RunRequest): Promise<string | undefined> {
  const [made] = await findByRequests(tx, [request]);
  return made && sameRequest(made, request);
}

/** The run that was made under the request's id, unless it was asked for in another way. */
export function sameRequest(
  known: { readonly id: string; readonly fingerprint: string },
  request: Pick<RunRequest, "requestId" | "fingerprint">,
): string {
  const { requestId, fingerprint } = request;
  if (known.fingerprint === fingerprint) return known.id;
  throw new AppError(
    "already_exists",
    `request_id: ${requestId} is the id of run ${known.id}, which has different parameters; choose a new one`,
    { field: "request_id", next: `millwright run show ${known.id}` },
  );
}

/** A run that a caller asked for. */
export interface AskedRun {
  readonly id: string;
  /** Of a first attempt; absent: one is made up. */
  readonly jobId?: string;
  readonly target: RunTarget;
  readonly requestId: string;
  readonly fingerprint: string;
  /** Empty when it was started by plan or workflow alone. */
  readonly type: string;
  readonly plan: Plan;
  readonly params: Readonly<Record<string, string>>;
  readonly facts: JsonObject;
  /** Set for an attempt that is there to undo. */
  readonly canceledAt?: Date | null;
  /** The step of another run that has it started; absent: nobody but the caller. */
  readonly parent?: ParentStep;
  /** Absent for the first attempt at a job. */
  readonly next?: { readonly of: Run; readonly action: RunAction };
}

/** The caller holds the locks of the target and of the run. */
export async function createRun(tx: Transaction, deps: ServiceDeps, caller: Caller, run: AskedRun): Promise<void> {
  const { next } = run;
  const why = next && { reason: `${next.action} of ${next.of.id}` };
  await createAll(tx, storeOf(deps.stores, "run"), [askedRun(deps, caller, run)], { ...doneBy(caller), ...why });
}

/** It takes the run slot that its target has, such as the machine's. */
export function askedRun(
  { stores }: Pick<ServiceDeps, "stores">,
  caller: Caller,
  { id, target, plan, next, ...run }: AskedRun,
): NewThing {
  const slot = storeOf(stores, target.kind).takesRuns?.slotOf?.(target);
  return {
    id,
    row: {
      target_kind: target.kind,
      target_id: target.id,
      machine_id: slot?.machineId ?? null,
      request_id: run.requestId,
      fingerprint: run.fingerprint,
      type: run.type,
      plan_id: plan.planId,
      plan: { ...plan, steps: plan.steps.map((step) => ({ ...step })) },
      params: run.params,
      job_id: next?.of.jobId ?? run.jobId ?? newJobId(),
      attempt: (next?.of.attempt ?? 0) + 1,
      previous_run_id: next?.of.id ?? null,
      action: next?.action ?? "start",
      parent_run_id: run.parent?.runId ?? null,
      parent_step: run.parent?.step ?? null,
      parent_round: run.parent?.round ?? null,
      initiator: actorOf(caller),
      cancel_requested_at: run.canceledAt?.toISOString() ?? null,
      // What the attempt before has in its log is not said again in this one's.
      facts: { ...run.facts, ...(next?.of.heard && { heard: next.of.heard }) },
    },
  };
}

/** What a run of a plan begins with. */
export const factsOfPlanRun = (
  scripts: Readonly<Record<string, string>>,
  { steps, takeBackFirst }: Inheritance = { steps: [], takeBackFirst: null },
): JsonObject => ({
  scripts,
  ...(steps.length > 0 && { steps: steps.map(stepJson) }),
  ...(takeBackFirst !== null && { takeBackFirst: { ...takeBackFirst } }),
});
