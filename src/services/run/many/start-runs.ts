import { createHash } from "node:crypto";
import { type Reach, reachOf } from "../../../kernel/access/scope.ts";
import { AppError } from "../../../kernel/errors.ts";
import { batchLifecycle } from "../../../lifecycles/batch/lifecycle.ts";
import type { Plan } from "../../../runs/model/plan/plan.ts";
import { chooseRunType } from "../../../runs/model/plan/run-types.ts";
import type { Run } from "../../../runs/model/run.ts";
import { batchRuns } from "../../../runs/steps/batch-runs.ts";
import { create } from "../../../store/lifecycle/create.ts";
import { lockThings } from "../../../store/lifecycle/locks.ts";
import { storeOf } from "../../../store/lifecycle/things.ts";
import { machineListing } from "../../../store/machine/machine-list.ts";
import { findOnTarget } from "../../../store/run/runs.ts";
import type { Caller } from "../../call/caller.ts";
import { actorOf, doneBy } from "../../call/initiator.ts";
import { pageList } from "../../call/listing.ts";
import { outOfReach } from "../../call/reach.ts";
import { checkRunRequestId, createRun, fingerprintOf, newRunId, sameRequest } from "../creation.ts";
import type { RunDeps } from "../deps.ts";
import { findPlan } from "../plans.ts";
import { getRun } from "../read.ts";

export interface StartRuns {
  readonly requestId: string;
  /** Which machines: those that it admits now. A machine that matches later is not included. */
  readonly filter: string;
  readonly type: string;
  readonly planId: string;
  readonly params: Readonly<Record<string, string>>;
  /** 0: the default. */
  readonly maxParallel: number;
  /** 0: never. */
  readonly stopAfter: number;
}

const MOST_MACHINES = 1_000;
const USUAL_PARALLEL = 5;
const PLAN_ID = "batch";

/**
 * Freezes the machines that the filter admits now, and starts a run that starts a run on each of them. The same request again returns the
 * same run, with the machines of then.
 */
export async function startRuns(deps: RunDeps, caller: Caller, input: StartRuns): Promise<Run> {
  checkRunRequestId(input.requestId);
  const { type, planId } = chooseRunType(input);
  await findPlan(deps.db, planId);
  const plan = planOf(input);
  const fingerprint = fingerprintOf([input.filter, ...plan.steps.map(({ payload }) => payload)]);
  const { requestId } = input;
  const target = { kind: batchLifecycle.kind, id: batchIdOf(actorOf(caller), requestId) };
  const newId = newRunId();
  const id = await deps.db.transaction(async (tx) => {
    await lockThings(tx, [target, { kind: "run", id: newId }]);
    const known = await findOnTarget(tx, { target, requestId });
    if (known) return sameRequest(known, { requestId, fingerprint });
    const machines = await freeze(deps, input.filter, reachOf(caller.scope));
    const row = { machines, initiator: actorOf(caller) };
    await create(tx, storeOf(deps.stores, target.kind), { id: target.id, row, ...doneBy(caller) });
    await createRun(tx, deps, caller, { id: newId, target, requestId, fingerprint, type, plan, params: {}, facts: {} });
    return newId;
  });
  // A run that was there before may be of more machines than the caller reaches now.
  const refused = await outOfReach(deps, caller, [{ kind: "run", id }]);
  if (refused) throw refused;
  return getRun(deps, id);
}

/** One a request of a caller, so that a repeated request finds it. */
const batchIdOf = (actor: string, requestId: string): string =>
  `batch-${createHash("sha256")
    .update(JSON.stringify([actor, requestId]))
    .digest("hex")
    .slice(0, 32)}`;

function planOf({ maxParallel, stopAfter, type, planId, params }: StartRuns): Plan {
  for (const [field, value] of Object.entries({ max_parallel: maxParallel, stop_after: stopAfter }))
    if (value < 0 || value > MOST_MACHINES)
      throw new AppError("invalid_argument", `${field}: must be from 0 to ${MOST_MACHINES}, got ${value}`, { field });
  const payload = {
    max_parallel: maxParallel || USUAL_PARALLEL,
    stop_after: stopAfter,
    type,
    plan_id: planId,
    params: Object.fromEntries(Object.entries(params).sort()),
  };
  const { timeout, maxRetries } = batchRuns.defaults;
  const step = { name: "runs", kind: batchRuns.kind, timeoutSeconds: timeout / 1_000, maxRetries, payload };
  return { planId: PLAN_ID, displayName: "Runs on many machines", steps: [step] };
}

async function freeze(deps: RunDeps, filter: string, reach: Reach | undefined): Promise<string[]> {
  const refuse = (why: string) => new AppError("invalid_argument", `filter: ${why}`, { field: "filter" });
  if (filter.trim() === "") throw refuse("is required: which machines, such as rack=rack-1");
  const request = { filter, pageSize: MOST_MACHINES, pageToken: "", reach };
  const { items, nextPageToken } = await pageList(deps, machineListing, request, {
    clauses: [{ field: "phase", operator: "!=", value: "RETIRED" }],
    show: ({ id }): string => id,
  });
  if (items.length === 0)
    throw new AppError("failed_precondition", "no machine matches the filter", {
      field: "filter",
      next: "millwright machine list --filter …",
    });
  if (nextPageToken !== "") throw refuse(`admits more than ${MOST_MACHINES} machines; start them in parts`);
  return [...items];
}
