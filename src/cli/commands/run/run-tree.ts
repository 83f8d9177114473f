import { Run_Phase } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import type { ChildRun } from "../../../../contract/millwright/v1/run_pb.js";
import type { Section, Style } from "../../terminal/output.ts";
import { type Cell, tableOf } from "../../terminal/table.ts";
import { targetText } from "./record.ts";
import { phaseOf, toneOf, tookText } from "./run-phase.ts";

/** More runs of one step that went well are not shown one by one: they would drown those that did not. */
const MOST_SUCCEEDED = 10;

/** What needs somebody comes first, and what is over last. */
const URGENCY: readonly Run_Phase[] = [
  Run_Phase.FAILED,
  Run_Phase.CANCELED,
  Run_Phase.RUNNING,
  Run_Phase.PENDING,
  Run_Phase.SUCCEEDED,
];
const byUrgency = (one: ChildRun, other: ChildRun): number => URGENCY.indexOf(one.phase) - URGENCY.indexOf(other.phase);

const HEADS = ["STEP AND RUN", "TARGET", "PHASE", "AT STEP", "TOOK", "MESSAGE"];

interface Row {
  readonly name: string;
  readonly target?: string;
  readonly phase?: Run_Phase;
  readonly step?: string;
  readonly took?: string;
  readonly message: string;
}

/** Above the runs of one step: nothing stands beside it. */
const headOf = (text: string): Cell[] => HEADS.map((_, at) => ({ text: at === 0 ? text : " ", tone: undefined }));

function rowOf({ name, target = "", phase, step = "", took = "", message }: Row): Cell[] {
  const plain = (text: string): Cell => ({ text, tone: undefined });
  const phaseCell = phase === undefined ? plain("") : { text: phaseOf({ phase }), tone: toneOf({ phase }) };
  return [plain(name), plain(target), phaseCell, plain(step), plain(took), plain(message)];
}

/** The runs that a run has started, by step and round, each with those that it has started itself. */
export const treeOf = (runId: string, children: readonly ChildRun[], style: Style): Section => ({
  title: "Runs that it has started",
  body: tableOf(HEADS, rowsBelow(runId, children, "", style.now), style),
});

const rowsBelow = (runId: string, children: readonly ChildRun[], indent: string, now: Date): Cell[][] =>
  [...Map.groupBy(children, stepText)].flatMap(([step, runs]) => [
    headOf(`${indent}${step}: ${sumOf(runs)}`),
    ...branches(runs, runId, indent, now),
  ]);

/** `flash_all`, or `flash_all, round 2`. */
const stepText = ({ step, round }: ChildRun): string => (round > 1 ? `${step}, round ${round}` : step);

/** `1 FAILED, 297 SUCCEEDED`. */
function sumOf(runs: readonly ChildRun[]): string {
  const ofPhase = Map.groupBy(runs, ({ phase }) => phase);
  return URGENCY.flatMap((phase) => {
    const count = ofPhase.get(phase)?.length ?? 0;
    return count === 0 ? [] : [`${count} ${phaseOf({ phase })}`];
  }).join(", ");
}

function branches(runs: readonly ChildRun[], parentId: string, indent: string, now: Date): Cell[][] {
  const { shown, left } = shownOf(runs);
  const rows = shown.flatMap((run, at) => {
    const isLast = at === shown.length - 1 && left === 0;
    return branch(run, {
      mark: `${indent}${isLast ? "└─ " : "├─ "}`,
      indent: `${indent}${isLast ? "   " : "│  "}`,
      now,
    });
  });
  if (left === 0) return rows;
  const command = `millwright run list --children --filter 'parent_run_id=${parentId} AND phase=SUCCEEDED'`;
  return [...rows, rowOf({ name: `${indent}└─ … and ${left} more`, phase: Run_Phase.SUCCEEDED, message: command })];
}

function shownOf(runs: readonly ChildRun[]): { readonly shown: readonly ChildRun[]; readonly left: number } {
  const sorted = runs.toSorted(byUrgency);
  const others = sorted.filter(({ phase }) => phase !== Run_Phase.SUCCEEDED);
  const left = sorted.length - others.length - MOST_SUCCEEDED;
  // One line that says "1 more" tells less than the run itself.
  return left > 1 ? { shown: sorted.slice(0, others.length + MOST_SUCCEEDED), left } : { shown: sorted, left: 0 };
}

interface Place {
  readonly mark: string;
  readonly indent: string;
  readonly now: Date;
}

function branch(run: ChildRun, { mark, indent, now }: Place): Cell[][] {
  const { runId, target, phase, currentStep: step, message, children } = run;
  const place = target ? targetText(target) : "";
  const row = rowOf({ name: `${mark}${runId}`, target: place, phase, step, took: tookText(run, now), message });
  return [row, ...rowsBelow(runId, children, indent, now)];
}
