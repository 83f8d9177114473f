import { AppError } from "../../kernel/errors.ts";
import { ACTION_RULES, mayFollowPhase, type NextAttempt } from "../../runs/model/next-attempt.ts";
import type { Run } from "../../runs/model/run.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { getLatestAttempt, listRuns } from "../../store/run/runs.ts";

export async function loadRun(tx: Transaction, id: string): Promise<Run> {
  const [run] = await listRuns(tx, { ids: [id] });
  if (run) return run;
  throw new AppError("not_found", `run ${id.slice(0, 80)} does not exist`, { next: "millwright run list" });
}

/** An earlier attempt no longer speaks for its job: acting on it would undo what people have done since. */
export async function checkLatest(
  tx: Transaction,
  run: Run,
  action: NextAttempt | "cancel" | "mark_manual",
): Promise<void> {
  if (run.nextRunId === null) return;
  const latest = await getLatestAttempt(tx, run.jobId);
  const id = latest?.id ?? run.nextRunId;
  const isAttempt = action !== "mark_manual" && action !== "cancel";
  const isPossible = latest !== undefined && isAttempt && mayFollowPhase(action, latest.phase);
  const command = isPossible ? ACTION_RULES[action].command : "show";
  throw new AppError(
    "failed_precondition",
    `run ${run.id} is not the latest attempt at its job: ${id} came after it${latest ? ` and is ${latest.phase}` : ""}`,
    { field: "run_id", next: `millwright run ${command} ${id}` },
  );
}
