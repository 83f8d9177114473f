import { randomUUID } from "node:crypto";
import { Run_Phase } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { type ChildRun, RunActionsService } from "../../../../contract/millwright/v1/run_pb.js";
import { describeFailure, type ExitCode } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { printable } from "../../terminal/printable.ts";
import { printLine, printList } from "../../terminal/printing.ts";
import { readRun, runJson, type ShownRun } from "./record.ts";
import { printRun, runColumns } from "./view.ts";

/** Each for itself: what is refused of one of them does not keep the others from ending. The exit code is that of the first refusal. */
export async function cancelRuns(session: Session, ids: readonly string[]): Promise<number | undefined> {
  const [only] = ids;
  if (only !== undefined && ids.length === 1) {
    const canceled = await cancelRun(session, only);
    await printRun(session, canceled);
    sayWhatFollows(session, canceled);
    return undefined;
  }
  const canceled: ShownRun[] = [];
  let refused: ExitCode | undefined;
  for (const id of new Set(ids)) {
    try {
      canceled.push(await cancelRun(session, id));
    } catch (error) {
      if (session.signal.aborted) throw error;
      const { message, exitCode } = await describeFailure(error, undefined);
      printLine(session.terminal.stderr, `error: ${printable(message)}`);
      refused ??= exitCode;
    }
  }
  await printList(
    session,
    { items: canceled, columns: runColumns(session.style(), true), json: runJson },
    "None was canceled.",
  );
  for (const each of canceled) sayWhatFollows(session, each);
  return refused;
}

async function cancelRun(session: Session, runId: string): Promise<ShownRun> {
  const client = await session.client(RunActionsService);
  const { run } = await client.cancelJob({ runId, requestId: randomUUID() }, { signal: session.signal });
  return readRun(session, run?.runId ?? runId);
}

const isActive = ({ phase }: Pick<ChildRun, "phase">): boolean => phase <= Run_Phase.RUNNING;

/** For people: what becomes of it, of the runs that it has started, and of the run that it is a part of. */
function sayWhatFollows({ terminal }: Session, { run, parent, children }: ShownRun): void {
  if (!isActive(run)) return;
  const { runId } = run;
  const active = children.filter(isActive).length;
  const those = active === 1 ? "the run that it has started ends" : `the ${active} runs that it has started end`;
  printLine(
    terminal.stderr,
    active === 0
      ? `Canceling ${runId}: it undoes first what it has begun. Follow it: millwright run logs ${runId} --follow`
      : `Canceling ${runId}: ${those} first, undoing what was begun. Follow it: millwright run watch ${runId}`,
  );
  if (parent) printLine(terminal.stderr, `Run ${parent.runId} (step ${parent.step}) counts ${runId} as failed.`);
}
