import { randomUUID } from "node:crypto";
import { Run_Phase, RunService } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { EXIT, UsageError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import type { ConfirmOptions } from "../../terminal/confirm.ts";
import { printLine } from "../../terminal/printing.ts";
import { readRunLog } from "./log-reader.ts";
import { sinkOf } from "./logs.ts";
import { readRun, type ShownRun } from "./record.ts";
import type { FilterOptions } from "./start-by-filter.ts";
import { printRun } from "./view.ts";

export interface StartRunOptions extends ConfirmOptions, FilterOptions {
  readonly machine?: readonly string[];
  readonly type?: string;
  readonly plan?: string;
  readonly param?: readonly string[];
  readonly requestId?: string;
  readonly wait?: boolean;
  readonly dryRun?: boolean;
}

export async function startRun(session: Session, options: StartRunOptions): Promise<number | undefined> {
  const params = Object.fromEntries((options.param ?? []).map(parseParam));
  const machines = [...new Set(options.machine ?? [])];
  const { type = "", plan: planId = "", requestId = randomUUID(), wait = false, yes = false, filter } = options;
  checkWhere(options);
  if (filter !== undefined)
    return (await import("./start-by-filter.ts")).startByFilter(
      session,
      { filter, requestId, type, planId, params },
      options,
    );
  if (options.dryRun) return (await import("./preview.ts")).previewRuns(session, { machines, type, planId, params });
  await (await import("./confirm-start.ts")).confirmStart(session, {
    ...{ machines, type, planId, params, yes },
    requestId: options.requestId,
  });
  const client = await session.client(RunService);
  // The id of a request counts for one machine: the same will do for all of them.
  const start = async (machineId: string): Promise<ShownRun> => {
    const run = await client.startRun({ requestId, machineId, type, planId, params }, { signal: session.signal });
    return { run, target: { kind: "machine", id: run.machineId }, children: [], stepDetails: [] };
  };
  const [only] = machines;
  if (only === undefined || machines.length > 1)
    return (await import("./start-many.ts")).startMany(session, { on: machines, wait, start });
  const asStarted = await start(only);
  return showStarted(session, { runId: asStarted.run.runId, wait, asStarted });
}

function checkWhere({ machine, filter, maxParallel, stopAfter }: StartRunOptions): void {
  if ((machine === undefined) === (filter === undefined))
    throw new UsageError("either --machine or --filter says where", "such as --machine m-1, or --filter rack=rack-1");
  if (filter === undefined && (maxParallel !== undefined || stopAfter !== undefined))
    throw new UsageError("--max-parallel and --stop-after go with --filter");
}

interface StartedRun {
  readonly runId: string;
  readonly wait: boolean;
  /** Absent: it is read. */
  readonly asStarted?: ShownRun;
}

/** A run that was just started: as it is, or followed to its end, which the exit code then tells. */
export async function showStarted(
  session: Session,
  { runId, wait, asStarted }: StartedRun,
): Promise<number | undefined> {
  if (!wait) {
    await printRun(session, asStarted ?? (await readRun(session, runId)));
    return undefined;
  }
  printLine(session.terminal.stderr, `${runId}`);
  // For programs standard output has the result and nothing else.
  const aside = session.style().format === "table" ? undefined : session.terminal.stderr;
  try {
    for await (const { stream, text } of readRunLog(session, { runId, follow: true, isConnected: true }))
      (aside ?? sinkOf(session, stream)).write(text);
  } catch (error) {
    printLine(session.terminal.stderr, `The run goes on. Follow it: millwright run logs ${runId} --follow`);
    throw error;
  }
  const ended = await readRun(session, runId);
  await printRun(session, ended);
  return ended.run.phase === Run_Phase.SUCCEEDED ? undefined : EXIT.operationFailed;
}

function parseParam(pair: string): [name: string, value: string] {
  const at = pair.indexOf("=");
  if (at < 1) throw new UsageError(`--param: ${JSON.stringify(pair)} is not name=value`);
  return [pair.slice(0, at), pair.slice(at + 1)];
}
