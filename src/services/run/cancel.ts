import { AppError } from "../../kernel/errors.ts";
import { isActive, type Run } from "../../runs/model/run.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { announce } from "../../store/lifecycle/journal.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { listRuns } from "../../store/run/runs.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { ALL_RUNS, type RunScope } from "./filter.ts";
import { checkFound, getRun } from "./read.ts";
import { checkRunId } from "./start-checks.ts";

const KIND = "run";

/** Ends an active run in bounded time; asking again is harmless. */
export async function cancelRun(
  deps: ServiceDeps,
  caller: Caller,
  id: string,
  scope: RunScope = ALL_RUNS,
): Promise<Run> {
  checkRunId(id);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: KIND, id }]);
    await cancelInTransaction(tx, deps, caller, id, scope);
  });
  return getRun(deps, id);
}

/** The same as a part of what the caller does; the caller holds the run's lock. */
export async function cancelInTransaction(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  id: string,
  scope: RunScope = ALL_RUNS,
): Promise<void> {
  const [found] = await listRuns(tx, { ids: [id] });
  const run = checkFound(found, id, scope);
  // Of a run that cannot prove what it began, a further cancel is the release: somebody takes it upon themselves.
  if (run.phase === "CANCELED" || (run.cancelRequestedAt !== null && run.unproven === null)) return;
  if (!isActive(run.phase)) {
    throw new AppError(
      "failed_precondition",
      `run ${id} has already ended: it ${run.phase === "SUCCEEDED" ? "SUCCEEDED" : "FAILED"}`,
    );
  }
  await recordChange(tx, storeOf(deps.stores, KIND), {
    id,
    ...doneBy(caller),
    type: "cancel_requested",
    set: { cancel_requested_at: nowOf(deps) },
  });
  await work.wake(tx, [{ kind: KIND, id }]);
  announce(tx);
}
