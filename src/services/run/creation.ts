import { createHash, randomUUID } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import type { Json } from "../../kernel/lifecycle.ts";
import { isPrintable } from "../../kernel/printable.ts";
import { stepJson } from "../../runs/model/lifecycle.ts";
import type { Inheritance, NextAttempt } from "../../runs/model/next-attempt.ts";
import type { Plan } from "../../runs/model/plan/plan.ts";
import type { Run } from "../../runs/model/run.ts";
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
    `request_id: ${requestId} started run ${known.id}, which was asked for in another way; choose a new one`,
    { field: "request_id", next: `millwright run show ${known.id}` },
  );
}

export interface NewRun extends RunRequest {
  readonly id: string;
  readonly type: string;
  readonly plan: Plan;
  readonly params: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
  /** Absent for the first attempt at a job. */
  readonly next?: { readonly of: Run; readonly action: NextAttempt; readonly inherited: Inheritance };
}

/** The caller holds the locks of the machine and of the run. */
export async function createRun(tx: Transaction, deps: ServiceDeps, caller: Caller, run: NewRun): Promise<void> {
  const { next } = run;
  const why = next && { reason: `${next.action} of ${next.of.id}` };
  await createAll(tx, storeOf(deps.stores, "run"), [newThing(caller, run)], { ...doneBy(caller), ...why });
}

export function newThing(caller: Caller, run: NewRun): NewThing {
  const { plan, next, scripts } = run;
  const { steps, takeBackFirst } = next?.inherited ?? { steps: [], takeBackFirst: null };
  return {
    id: run.id,
    row: {
      target_kind: "machine",
      target_id: run.machineId,
      machine_id: run.machineId,
      request_id: run.requestId,
      fingerprint: run.fingerprint,
      type: run.type,
      plan_id: plan.planId,
      plan: { ...plan, steps: plan.steps.map((step) => ({ ...step })) },
      params: run.params,
      job_id: next?.of.jobId ?? `job-${randomUUID()}`,
      attempt: (next?.of.attempt ?? 0) + 1,
      previous_run_id: next?.of.id ?? null,
      action: next?.action ?? "start",
      initiator: actorOf(caller),
      facts: {
        scripts,
        ...(steps.length > 0 && { steps: steps.map(stepJson) }),
        ...(takeBackFirst !== null && { takeBackFirst: { ...takeBackFirst } }),
        // What the attempt before has in its log is not said again in this one's.
        ...(next?.of.heard && { heard: next.of.heard }),
      },
    },
  };
}
