import { randomUUID } from "node:crypto";
import {
  MachineService,
  type Run,
  Run_Phase,
  RunSchema,
  RunService,
  type StepStatus,
  StepStatus_State,
} from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { RunActionsService } from "../../../../contract/millwright/v1/run_pb.js";
import { EXIT, isConnectError, UsageError } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type Column, renderChange, renderHead, renderList } from "../../terminal/output.ts";
import { printList, printOne } from "../../terminal/printing.ts";
import { age, clockTime, isoTime, toDate } from "../../terminal/times.ts";
import { joinFilters } from "../options/list-options.ts";
import { type LogText, readRunLog } from "./log-reader.ts";

export interface StartRunOptions {
  readonly machine: string;
  readonly type?: string;
  readonly plan?: string;
  readonly param?: readonly string[];
  readonly requestId?: string;
  readonly wait?: boolean;
  readonly dryRun?: boolean;
}

export interface ListRunsOptions {
  readonly filter?: string;
  readonly machine?: string;
  readonly limit: string;
}

export interface RunLogsOptions {
  readonly follow?: boolean;
}

const phaseOf = ({ phase }: Run): string => Run_Phase[phase] ?? "UNKNOWN";
const stateOf = ({ state }: StepStatus): string => StepStatus_State[state] ?? "UNKNOWN";
const json = (run: Run) => jsonOf(RunSchema, run);

const columns: readonly Column<Run>[] = [
  { title: "RUN", cell: ({ runId }) => runId },
  { title: "MACHINE", cell: ({ machineId }) => machineId },
  { title: "TYPE", cell: ({ type }) => type || "-", plain: ({ type }) => type },
  { title: "PHASE", cell: phaseOf },
  { title: "STEP", cell: ({ currentStep }) => currentStep || "-", plain: ({ currentStep }) => currentStep },
  {
    title: "CREATED",
    cell: (run) => clockTime(run.createdAt),
    short: { cell: (run, now) => `${age(run.createdAt, now)} ago`, least: "23h 59m ago".length },
    plain: (run) => isoTime(run.createdAt),
  },
  { title: "MESSAGE", cell: ({ message }) => message || "-", plain: ({ message }) => message },
];

/** When it began, without the date where that is the run's own; and how long it took, or has taken so far. */
const stepColumns = (run: Run): readonly Column<StepStatus>[] => [
  { title: "STEP", cell: ({ name }) => name },
  { title: "STATE", cell: (step) => outcomeOf(step) },
  { title: "FAILED ATTEMPTS", cell: ({ retryCount }) => String(retryCount) },
  { title: "STARTED", cell: (step) => timeWithin(run, step.startedAt) },
  { title: "TOOK", cell: tookText },
  { title: "MESSAGE", cell: ({ message }) => message || "-" },
];

function timeWithin(run: Run, at: StepStatus["startedAt"]): string {
  const [date, time] = clockTime(at).split(" ");
  return time !== undefined && clockTime(run.startedAt).startsWith(`${date} `) ? time : clockTime(at);
}

function tookText({ startedAt, finishedAt }: StepStatus, now: Date): string {
  if (!startedAt) return "";
  return finishedAt ? age(startedAt, toDate(finishedAt)) : `${age(startedAt, now)} so far`;
}

export async function startRun(session: Session, options: StartRunOptions): Promise<number | undefined> {
  const params = Object.fromEntries((options.param ?? []).map(parseParam));
  if (options.dryRun) return (await import("./preview.ts")).previewRun(session, options, params);
  const client = await session.client(RunService);
  const run = await client.startRun(
    {
      requestId: options.requestId ?? randomUUID(),
      machineId: options.machine,
      type: options.type ?? "",
      planId: options.plan ?? "",
      params,
    },
    { signal: session.signal },
  );
  return showStarted(session, run, options.wait ?? false);
}

/** A run that was just started: as it is, or followed to its end, which the exit code then tells. */
export async function showStarted(session: Session, run: Run, wait: boolean): Promise<number | undefined> {
  if (!wait) {
    await printRun(session, run);
    return undefined;
  }
  const client = await session.client(RunService);
  session.terminal.stderr.write(`${run.runId}\n`);
  // For programs standard output has the result and nothing else.
  const aside = session.style().format === "table" ? undefined : session.terminal.stderr;
  try {
    for await (const { stream, text } of readRunLog(session, { runId: run.runId, follow: true, isConnected: true }))
      (aside ?? sinkOf(session, stream)).write(text);
  } catch (error) {
    session.terminal.stderr.write(`The run goes on. Follow it: millwright run logs ${run.runId} --follow\n`);
    throw error;
  }
  const ended = await client.getRun({ runId: run.runId }, { signal: session.signal });
  await printRun(session, ended);
  return ended.phase === Run_Phase.SUCCEEDED ? undefined : EXIT.operationFailed;
}

function parseParam(pair: string): [name: string, value: string] {
  const at = pair.indexOf("=");
  if (at < 1) throw new UsageError(`--param: ${JSON.stringify(pair)} is not name=value`);
  return [pair.slice(0, at), pair.slice(at + 1)];
}

export async function listRuns(session: Session, options: ListRunsOptions): Promise<undefined> {
  const client = await session.client(RunService);
  const limit = Number(options.limit);
  if (!Number.isInteger(limit) || limit < 1 || limit > 1_000)
    throw new UsageError("--limit: a whole number from 1 to 1000");
  const filter = joinFilters(options.filter, options.machine && `machine_id=${options.machine}`);
  const { runs } = await client.listRuns({ filter, pageSize: limit }, { signal: session.signal });
  // No runs of a machine that there is, or no such machine: the second is a slip of the pen, and refused as one.
  if (runs.length === 0 && options.machine) await checkMachineExists(session, options.machine);
  await printList(session, { items: runs, columns, json }, "No runs.");
}

async function checkMachineExists(session: Session, machineId: string): Promise<void> {
  const client = await session.client(MachineService);
  try {
    await client.getMachine({ machineId }, { signal: session.signal });
  } catch (error) {
    const { Code } = await import("@connectrpc/connect");
    if (isConnectError(error) && error.code === Code.NotFound) throw error;
  }
}

export async function showRun(session: Session, id: string): Promise<undefined> {
  const client = await session.client(RunService);
  await printRun(session, await client.getRun({ runId: id }, { signal: session.signal }));
}

const logColumns: readonly Column<LogText>[] = [
  { title: "SEQ", cell: ({ seq }) => String(seq) },
  { title: "AT", cell: ({ ts }) => isoTime(ts) },
  { title: "STEP", cell: ({ step }) => step },
  { title: "STREAM", cell: ({ stream }) => stream },
  { title: "TEXT", cell: ({ text }) => text },
];
const logJson = ({ seq, ts, step, stream, text }: LogText) => ({
  seq: String(seq),
  at: isoTime(ts),
  step,
  stream,
  text,
});

/** For people as the steps said it, each on its own stream; for programs one record for each piece, with when and by which step. */
export async function runLogs(session: Session, id: string, { follow = false }: RunLogsOptions): Promise<undefined> {
  const style = session.style();
  if (style.format !== "table") session.terminal.stdout.write(await renderHead(logColumns, style));
  for await (const log of readRunLog(session, { runId: id, follow })) {
    if (style.format === "table") sinkOf(session, log.stream).write(log.text);
    else session.terminal.stdout.write(await renderChange({ columns: logColumns, json: logJson }, log, style));
  }
}

const sinkOf = ({ terminal }: Session, stream: string) => (stream === "stderr" ? terminal.stderr : terminal.stdout);

export async function cancelRun(session: Session, id: string): Promise<undefined> {
  const client = await session.client(RunActionsService);
  const { run } = await client.cancelJob({ runId: id, requestId: randomUUID() }, { signal: session.signal });
  if (!run) throw new Error("the server answered without the run");
  await printRun(session, run);
  if (run.phase <= Run_Phase.RUNNING)
    session.terminal.stderr.write(
      `Canceling: what was begun is taken back first. Follow it: millwright run logs ${run.runId} --follow\n`,
    );
}

/** For people: which attempt at which job it is, and where that job stands. */
const attemptOf = ({ attempt, action, previousRunId, nextRunId }: Run): string =>
  [
    `${attempt}`,
    previousRunId === "" ? "" : ` (${action} of ${previousRunId})`,
    nextRunId === "" ? "" : `, followed by ${nextRunId}`,
  ].join("");

const manualOf = ({ manual }: Run): string =>
  manual === undefined ? "" : `${manual.comment} (${manual.by}, ${clockTime(manual.at)})`;

const outcomeOf = (step: StepStatus): string => (step.carriedOver ? `${stateOf(step)} (carried over)` : stateOf(step));

/** It failed, waits for somebody else, or is at a step for the second time. */
const needsExplaining = ({ phase, waitingFor, steps }: Run): boolean =>
  phase === Run_Phase.FAILED ||
  waitingFor !== "" ||
  (phase === Run_Phase.RUNNING &&
    steps.some(({ state, retryCount }) => state === StepStatus_State.RUNNING && retryCount > 0));

export async function printRun(session: Session, run: Run): Promise<void> {
  const steps = await renderList(
    { items: run.steps, columns: stepColumns(run), json: () => null },
    { ...session.style(), format: "table" },
  );
  await printOne(session, {
    item: run,
    columns,
    json,
    details: [
      ["Run", run.runId, "bold"],
      ["Machine", run.machineId],
      ["Type", run.type],
      ["Plan", run.planId],
      ["Phase", phaseOf(run)],
      ["Job", run.jobId],
      ["Job is", run.jobState],
      ["Attempt", attemptOf(run)],
      ["People see to it", manualOf(run)],
      ["Message", run.message],
      ["Waits for", run.waitingFor],
      ["Started by", run.initiator],
      ["Created", clockTime(run.createdAt)],
      ["Started", clockTime(run.startedAt)],
      ["Finished", clockTime(run.finishedAt)],
      ["Left behind", run.residue.join("; ")],
      ["Explained by", needsExplaining(run) ? `millwright explain run ${run.runId}` : ""],
    ],
    sections: run.steps.length > 0 ? [{ title: "Steps", body: steps }] : [],
  });
}
