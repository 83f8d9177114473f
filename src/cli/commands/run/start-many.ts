import { Run_Phase } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { describeFailure, EXIT, type ExitCode } from "../../client/errors.ts";
import { followEvents } from "../../client/events.ts";
import type { Session } from "../../client/session.ts";
import { printable } from "../../terminal/printable.ts";
import { printLine, printList } from "../../terminal/printing.ts";
import { readRun, runJson, type ShownRun } from "./record.ts";
import { runColumns } from "./view.ts";

export interface StartMany {
  /** Machines, or runs that are done again. */
  readonly on: readonly string[];
  readonly wait: boolean;
  readonly start: (id: string) => Promise<ShownRun>;
}

/** A run on each. One that is refused does not keep the others from being started; the exit code is that of the first refusal. */
export async function startMany(session: Session, { on, wait, start }: StartMany): Promise<number | undefined> {
  const started: ShownRun[] = [];
  let refused: ExitCode | undefined;
  for (const id of on) {
    try {
      started.push(await start(id));
    } catch (error) {
      if (session.signal.aborted) throw error;
      const { message, exitCode } = await describeFailure(error, undefined);
      printLine(session.terminal.stderr, `error: ${id}: ${printable(message)}`);
      refused ??= exitCode;
    }
  }
  return showStartedRuns(session, { started, refused, wait });
}

export interface StartedRuns {
  readonly started: readonly ShownRun[];
  /** The exit code of the first refusal. */
  readonly refused: ExitCode | undefined;
  readonly wait: boolean;
}

/** Runs that were just started: as they are, or followed to their ends, which the exit code then tells. */
export async function showStartedRuns(
  session: Session,
  { started, refused, wait }: StartedRuns,
): Promise<number | undefined> {
  const shown = wait ? await followToEnd(session, started) : started;
  const listing = { items: shown, columns: runColumns(session.style()), json: runJson };
  await printList(session, listing, "No run was started.");
  if (wait && session.signal.aborted && shown.some(isActive)) return EXIT.interrupted;
  const hasFailed = wait && shown.some(({ run }) => run.phase !== Run_Phase.SUCCEEDED);
  return refused ?? (hasFailed ? EXIT.operationFailed : undefined);
}

const isActive = ({ run }: ShownRun): boolean => run.phase <= Run_Phase.RUNNING;

/** Says on standard error how each has ended, as it ends. */
async function followToEnd(session: Session, started: readonly ShownRun[]): Promise<ShownRun[]> {
  const runs = new Map(started.map((shown) => [shown.run.runId, shown]));
  const update = async (id: string) => {
    const shown = await readRun(session, id);
    const wasActive = isActive(runs.get(id) ?? shown);
    runs.set(id, shown);
    if (!wasActive || isActive(shown)) return;
    const { message, phase } = shown.run;
    const why = message === "" ? "" : `: ${printable(message)}`;
    printLine(session.terminal.stderr, `${shown.target.id}: ${Run_Phase[phase]}${why} (${id})`);
  };
  if (runs.size === 0) return [];
  for await (const followed of followEvents(
    session,
    { kinds: ["run"], ids: [...runs.keys()], from: "now" },
    session.signal,
  )) {
    // What happened before the stream was open is read once it is.
    if (followed.type === "ready") for (const id of runs.keys()) await update(id);
    else await update(followed.event.id);
    if (![...runs.values()].some(isActive)) break;
  }
  if ([...runs.values()].some(isActive))
    session.terminal.stderr.write("The runs go on. Follow them: millwright run watch\n");
  return [...runs.values()];
}
