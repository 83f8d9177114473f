import { randomUUID } from "node:crypto";
import { RunActionsService } from "../../../../contract/millwright/v1/run_pb.js";
import { UsageError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import type { ConfirmOptions } from "../../terminal/confirm.ts";
import { readRun } from "./record.ts";
import { showStarted } from "./start.ts";
import { printRun } from "./view.ts";

export type RunVerb = "retryRun" | "resumeRun" | "rerunRun" | "restartRunClean" | "adoptRun";

export interface ActOptions extends ConfirmOptions {
  readonly filter?: string;
  readonly requestId?: string;
  readonly wait?: boolean;
  /** Of a retry only. */
  readonly newScripts?: boolean;
}

export interface MarkManualOptions {
  readonly comment: string;
}

/** The next attempt at the job of each run. One that is refused does not keep the others from theirs. */
export async function actOnRuns(
  session: Session,
  { verb, word, given }: { readonly verb: RunVerb; readonly word: string; readonly given: readonly string[] },
  options: ActOptions,
): Promise<number | undefined> {
  const { requestId = randomUUID(), wait = false, newScripts = false, filter, yes = false } = options;
  const runIds = await chosenRuns(session, given, filter);
  // To adopt is to look: nothing is done to the machine.
  if (verb !== "adoptRun" && !yes)
    await (await import("./confirm-act.ts")).confirmAct(session, {
      ...{ runIds, word, areChosen: filter !== undefined },
      requestId: options.requestId,
    });
  const client = await session.client(RunActionsService);
  const act = async (runId: string): Promise<string> => {
    const request = { runId, requestId, ...(verb === "retryRun" && { takeNewScripts: newScripts }) };
    return (await client[verb](request, { signal: session.signal })).run?.runId ?? "";
  };
  const [only] = runIds;
  if (only !== undefined && runIds.length === 1) return showStarted(session, { runId: await act(only), wait });
  const { startMany } = await import("./start-many.ts");
  return startMany(session, { on: runIds, wait, start: async (runId) => readRun(session, await act(runId)) });
}

async function chosenRuns(
  session: Session,
  given: readonly string[],
  filter: string | undefined,
): Promise<readonly string[]> {
  if ((given.length === 0) === (filter === undefined))
    throw new UsageError("either ids or --filter say which runs", "such as --filter 'phase=FAILED AND created_at>-2h'");
  if (filter === undefined) return [...new Set(given)];
  const runs = await (await import("./list.ts")).readRuns(session, filter);
  if (runs.length === 0) throw new UsageError("no run matches --filter", "millwright run list --filter …");
  return runs.map(({ run }) => run.runId);
}

export async function markManual(session: Session, runId: string, { comment }: MarkManualOptions): Promise<undefined> {
  const client = await session.client(RunActionsService);
  await client.markRunManual({ runId, comment }, { signal: session.signal });
  await printRun(session, await readRun(session, runId));
}
