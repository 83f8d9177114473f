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

const HEADS = ["RUN", "TARGET", "PHASE", "AT STEP", "TOOK", "MESSAGE"];

/** The runs that a run has started, by step and round, each with those that it has started itself. */
export const treeOf = (runId: string, children: readonly ChildRun[], style: Style): Section[] =>
  [...Map.groupBy(children, stepText)].map(([step, runs]) => {
    const { shown, left } = shownOf(runs);
    const table = shown.length === 0 ? "" : tableOf(HEADS, branches(shown, "", style.now), style);
    // Beside the table, and so in one piece: a command is copied from the screen.
    const more = left === 0 ? "" : `${left} SUCCEEDED: ${listCommand(runId)}\n`;
    return { title: `Runs of step ${step}: ${sumOf(runs)}`, body: table + more };
  });

/** `flash_all`, or `flash_all, round 2`. */
const stepText = ({ step, round }: ChildRun): string => (round > 1 ? `${step}, round ${round}` : step);

const listCommand = (runId: string): string =>
  `millwright run list --children --filter 'parent_run_id=${runId} AND phase=SUCCEEDED'`;

/** `1 FAILED, 297 SUCCEEDED`. */
function sumOf(runs: readonly ChildRun[]): string {
  const ofPhase = Map.groupBy(runs, ({ phase }) => phase);
  return URGENCY.flatMap((phase) => {
    const count = ofPhase.get(phase)?.length ?? 0;
    return count === 0 ? [] : [`${count} ${phaseOf({ phase })}`];
  }).join(", ");
}

function shownOf(runs: readonly ChildRun[]): { readonly shown: readonly ChildRun[]; readonly left: number } {
  const sorted = runs.toSorted(byUrgency);
  const others = sorted.filter(({ phase }) => phase !== Run_Phase.SUCCEEDED);
  const left = sorted.length - others.length;
  return left > MOST_SUCCEEDED ? { shown: others, left } : { shown: sorted, left: 0 };
}

/** One row a run, and below it those that it has started. */
const branches = (runs: readonly ChildRun[], indent: string, now: Date): Cell[][] =>
  runs.toSorted(byUrgency).flatMap((run, at) => {
    const isLast = at === runs.length - 1;
    return [
      rowOf(run, `${indent}${isLast ? "└─" : "├─"} ${run.runId}`, now),
      ...branches(run.children, `${indent}${isLast ? "  " : "│ "} `, now),
    ];
  });

function rowOf(run: ChildRun, name: string, now: Date): Cell[] {
  const { target, phase, currentStep, message } = run;
  const texts = [name, target ? targetText(target) : "", phaseOf(run), currentStep, tookText(run, now), message];
  return texts.map((text, at) => ({ text, tone: HEADS[at] === "PHASE" ? toneOf({ phase }) : undefined }));
}
