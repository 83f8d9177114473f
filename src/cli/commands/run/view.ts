import {
  type Run,
  Run_Phase,
  type StepStatus,
  StepStatus_State,
} from "../../../../contract/baremetal/v1/baremetal_pb.js";
import type { RunParent, StepDetail } from "../../../../contract/millwright/v1/run_pb.js";
import type { Session } from "../../client/session.ts";
import type { Column, Detail, OneThing, Section, Style } from "../../terminal/output.ts";
import { renderList } from "../../terminal/output.ts";
import { printOne } from "../../terminal/printing.ts";
import { age, clockTime, isoTime } from "../../terminal/times.ts";
import { runJson, type ShownRun, targetText } from "./record.ts";
import { phaseOf, toneOf, tookText } from "./run-phase.ts";
import { treeOf } from "./run-tree.ts";

const stateOf = ({ state }: StepStatus): string => StepStatus_State[state] ?? "UNKNOWN";

/** Most runs are on machines, whose ids say enough. */
const placeOf = ({ target }: ShownRun): string => (target.kind === "machine" ? target.id : targetText(target));

const parentText = (parent: RunParent | undefined): string =>
  parent === undefined
    ? ""
    : `run ${parent.runId}, step ${parent.step}${parent.round > 1 ? `, round ${parent.round}` : ""}`;

const TARGET: readonly Column<ShownRun>[] = [
  { title: "TARGET", cell: placeOf, plain: ({ target }) => targetText(target) },
];
/** Programs find the machine where it always was. */
const MACHINE: readonly Column<ShownRun>[] = [{ title: "MACHINE", cell: ({ run }) => run.machineId }];
const PARENT: readonly Column<ShownRun>[] = [
  {
    title: "PART OF",
    cell: ({ parent }) => (parent ? `${parent.runId} ${parent.step}` : ""),
    short: { cell: ({ parent }) => parent?.runId ?? "", least: 40 },
    plain: ({ parent }) => parent?.runId ?? "",
  },
];

/** @param isOfChildren Runs that other runs have started are among them. */
export const runColumns = ({ format }: Pick<Style, "format">, isOfChildren = false): readonly Column<ShownRun>[] => [
  { title: "RUN", cell: ({ run }) => run.runId },
  ...(format === "csv" ? [...MACHINE, ...TARGET] : TARGET),
  { title: "TYPE", cell: ({ run }) => run.type || "-", plain: ({ run }) => run.type },
  { title: "PHASE", cell: ({ run }) => phaseOf(run), tone: ({ run }) => toneOf(run) },
  { title: "STEP", cell: ({ run }) => run.currentStep || "-", plain: ({ run }) => run.currentStep },
  {
    title: "CREATED",
    cell: ({ run }) => clockTime(run.createdAt),
    short: { cell: ({ run }, now) => `${age(run.createdAt, now)} ago`, least: "23h 59m ago".length },
    plain: ({ run }) => isoTime(run.createdAt),
  },
  ...(isOfChildren ? PARENT : []),
  { title: "MESSAGE", cell: ({ run }) => run.message || "-", plain: ({ run }) => run.message },
];

interface ShownStep {
  readonly step: StepStatus;
  readonly detail: StepDetail | undefined;
}

/** When it began, without the date where that is the run's own; and how long it took, or has taken so far. */
function stepColumns(run: Run, steps: readonly ShownStep[]): readonly Column<ShownStep>[] {
  const some = (isThere: (step: ShownStep) => boolean, column: Column<ShownStep>) =>
    steps.some(isThere) ? [column] : [];
  return [
    { title: "STEP", cell: ({ step }) => step.name },
    ...some(({ detail }) => (detail?.round ?? 1) > 1, {
      title: "ROUND",
      cell: ({ detail }) => String(detail?.round ?? 1),
    }),
    { title: "STATE", cell: outcomeOf },
    { title: "FAILED ATTEMPTS", cell: ({ step }) => String(step.retryCount) },
    { title: "STARTED", cell: ({ step }) => timeWithin(run, step.startedAt) },
    { title: "TOOK", cell: ({ step }, now) => tookText(step, now) },
    ...some(({ detail }) => detail?.verdict !== undefined && detail.verdict !== "", {
      title: "FOUND",
      cell: ({ detail }) => detail?.verdict ?? "",
    }),
    ...some(({ detail }) => detail?.receipt !== undefined, { title: "RECEIPT", cell: receiptText }),
    { title: "MESSAGE", cell: ({ step }) => step.message || "-" },
  ];
}

const receiptText = ({ detail }: ShownStep): string =>
  Object.entries(detail?.receipt ?? {})
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");

function outcomeOf({ step, detail }: ShownStep): string {
  const state = detail?.skipped ? "SKIPPED" : stateOf(step);
  return step.carriedOver ? `${state} (carried over)` : state;
}

function timeWithin(run: Run, at: StepStatus["startedAt"]): string {
  const [date, time] = clockTime(at).split(" ");
  return time !== undefined && clockTime(run.startedAt).startsWith(`${date} `) ? time : clockTime(at);
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

/** Of the step that the run failed in, or that it does not get past. */
function causeOf({ run, stepDetails }: ShownRun): string {
  if (run.phase === Run_Phase.SUCCEEDED || run.phase === Run_Phase.CANCELED) return "";
  const { cause } = stepDetails.at(-1) ?? {};
  if (cause === undefined) return "";
  const facts = Object.entries(cause.facts).map(([name, value]) => `${name}=${value}`);
  return facts.length === 0 ? cause.code : `${cause.code} (${facts.join(", ")})`;
}

/** It failed, waits for somebody else, or is at a step for the second time. */
const needsExplaining = ({ phase, waitingFor, steps }: Run): boolean =>
  phase === Run_Phase.FAILED ||
  waitingFor !== "" ||
  (phase === Run_Phase.RUNNING &&
    steps.some(({ state, retryCount }) => state === StepStatus_State.RUNNING && retryCount > 0));

function detailsOf(shown: ShownRun): Detail[] {
  const { run, target, parent } = shown;
  const isOnMachine = target.kind === "machine";
  return [
    ["Run", run.runId, "bold"],
    [isOnMachine ? "Machine" : "Target", isOnMachine ? target.id : targetText(target)],
    ["Takes the slot of", run.machineId === target.id && isOnMachine ? "" : run.machineId],
    ["Part of", parentText(parent)],
    ["Type", run.type],
    ["Plan", run.planId],
    ["Phase", phaseOf(run), toneOf(run)],
    ["Job", run.jobId],
    ["Job is", run.jobState],
    ["Attempt", attemptOf(run)],
    ["People see to it", manualOf(run)],
    ["Message", run.message],
    ["Cause", causeOf(shown)],
    ["Waits for", run.waitingFor],
    ["Started by", run.initiator],
    ["Created", clockTime(run.createdAt)],
    ["Started", clockTime(run.startedAt)],
    ["Finished", clockTime(run.finishedAt)],
    ["Left behind", run.residue.join("; ")],
    ["Explained by", needsExplaining(run) ? `millwright explain run ${run.runId}` : ""],
  ];
}

/** A run as people see it: what it is, its steps, and the runs that it has started. */
export async function runThing(shown: ShownRun, style: Style): Promise<OneThing<ShownRun>> {
  const { run, stepDetails, children } = shown;
  const steps = run.steps.map((step, at) => ({ step, detail: stepDetails[at] }));
  const sections: Section[] = [];
  if (steps.length > 0) {
    const table = { items: steps, columns: stepColumns(run, steps), json: () => null };
    sections.push({ title: "Steps", body: await renderList(table, { ...style, format: "table" }) });
  }
  sections.push(...treeOf(run.runId, children, style));
  return { item: shown, columns: runColumns(style, true), json: runJson, details: detailsOf(shown), sections };
}

export async function printRun(session: Session, shown: ShownRun): Promise<void> {
  await printOne(session, await runThing(shown, session.style()));
}
