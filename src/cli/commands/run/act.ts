import { randomUUID } from "node:crypto";
import { RunActionsService } from "../../../../contract/millwright/v1/run_pb.js";
import type { Session } from "../../client/session.ts";
import { readRun } from "./record.ts";
import { showStarted } from "./start.ts";
import { printRun } from "./view.ts";

export type RunVerb = "retryRun" | "resumeRun" | "rerunRun" | "restartRunClean" | "adoptRun";

export interface ActOptions {
  readonly requestId?: string;
  readonly wait?: boolean;
  /** Of a retry only. */
  readonly newScripts?: boolean;
}

export interface MarkManualOptions {
  readonly comment: string;
}

export async function actOnRun(
  session: Session,
  verb: RunVerb,
  runId: string,
  { requestId = randomUUID(), wait = false, newScripts = false }: ActOptions,
): Promise<number | undefined> {
  const client = await session.client(RunActionsService);
  const request = { runId, requestId, ...(verb === "retryRun" && { takeNewScripts: newScripts }) };
  const { run } = await client[verb](request, { signal: session.signal });
  return showStarted(session, { runId: run?.runId ?? "", wait });
}

export async function markManual(session: Session, runId: string, { comment }: MarkManualOptions): Promise<undefined> {
  const client = await session.client(RunActionsService);
  await client.markRunManual({ runId, comment }, { signal: session.signal });
  await printRun(session, await readRun(session, runId));
}
