import { AppError } from "../../../kernel/errors.ts";
import type { ParentStep } from "../../../runs/children/child-run.ts";
import type { Run } from "../../../runs/model/run.ts";
import type { Transaction } from "../../../store/postgres/database.ts";
import { listRuns } from "../../../store/run/runs.ts";

/** What is started by a caller is a part of no other run. */
interface Start {
  readonly requestId: string;
  readonly parent?: ParentStep;
}

/** The run that wants to start others was canceled or has ended meanwhile: that is no fault of the machine. */
export class ParentOver extends AppError {
  constructor(why: string) {
    super("failed_precondition", why);
  }
}

/** The runs that others are to be a part of. The caller holds their locks, so that none of them is canceled meanwhile. */
export async function findParents(tx: Transaction, starts: readonly Start[]): Promise<ReadonlyMap<string, Run>> {
  const ids = [...new Set(starts.flatMap(({ parent }) => (parent ? [parent.runId] : [])))];
  const found = ids.length === 0 ? [] : await listRuns(tx, { ids });
  return new Map(found.map((run) => [run.id, run]));
}

export function checkParent(parents: ReadonlyMap<string, Run>, { parent }: Start): void {
  if (!parent) return;
  const run = parents.get(parent.runId);
  if (!run) throw new ParentOver(`run ${parent.runId} does not exist`);
  if (run.phase !== "RUNNING") throw new ParentOver(`run ${run.id} is ${run.phase}, and starts no other runs`);
  if (run.cancelRequestedAt !== null) throw new ParentOver(`run ${run.id} is being canceled, and starts no other runs`);
}

/** Who knows the request of a part may have made it first: then the run is theirs, whatever it does. */
export function checkIsPart<K extends { readonly id: string; readonly parentRunId: string | null }>(
  known: K,
  { requestId, parent }: Start,
): K {
  if (!parent || known.parentRunId === parent.runId) return known;
  throw new AppError(
    "already_exists",
    `request_id: ${requestId} is the id of run ${known.id}, which is no part of run ${parent.runId}`,
    { field: "request_id", next: `millwright run show ${known.id}` },
  );
}
