import { isActive, type Run, type StepStatus } from "../../runs/model/run.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { readRunTree } from "../run/read.ts";
import { type Explanation, type NextCommand, say } from "./explanation.ts";
import { machineRemedies } from "./machine-remedies.ts";

/** The runs that a run has started and that decide about it: it waits for them, or has failed by them. */
export interface DecidingRuns {
  /** Those that are most in trouble first. */
  readonly runs: readonly Run[];
  /** Of the first of them. */
  readonly first: Explanation;
}

/** @param explain Explains one of them to whoever asked about its parent. */
export async function findDecidingRuns(
  deps: ServiceDeps,
  run: Run,
  step: StepStatus | undefined,
  explain: (id: string) => Promise<Explanation>,
): Promise<DecidingRuns | undefined> {
  const children = (await readRunTree(deps, run)).children.map((child) => child.run);
  const decides = isActive(run.phase) ? isStillActive : run.phase === "FAILED" ? hasFailed(step) : () => false;
  const runs = children.filter(decides).sort((one, other) => troubleOf(one) - troubleOf(other));
  return runs[0] && { runs, first: await explain(runs[0].id) };
}

const isStillActive = ({ phase }: Run): boolean => isActive(phase);

/** Of the step that failed, as it was entered last: earlier rounds were made up for. */
const hasFailed =
  (step: StepStatus | undefined) =>
  ({ phase, parent }: Run): boolean =>
    (phase === "FAILED" || phase === "CANCELED") && parent?.step === step?.name && parent?.round === step?.round;

/** The less, the worse: what has failed, what is tried again or has something in its way, what waits, and what goes on. */
function troubleOf({ phase, steps }: Run): number {
  if (phase === "FAILED") return 0;
  const { retryCount = 0, cause = null } = steps.at(-1) ?? {};
  if (retryCount > 0 || cause !== null) return 1;
  return phase === "PENDING" ? 2 : 3;
}

/** More would drown the reader: `run show` lists all. */
const MOST_NAMED = 5;

/** What a run waits for, line by line. */
export function waitsForRuns({ id }: Run, { runs, first }: DecidingRuns): string[] {
  const others = runs
    .slice(1, MOST_NAMED)
    .map(({ id: other, target, phase }) => `run ${other} on ${target.kind} ${target.id}, which is ${phase}`);
  const left = runs.length - MOST_NAMED;
  return [first.headline, ...others, ...(left > 0 ? [`${left} more: millwright run show ${id} lists all`] : [])];
}

/** `the run that it has started: run-2 on …`. */
export const headlineOfRuns = ({ runs, first }: DecidingRuns): string =>
  `${runs.length === 1 ? "the run" : `${runs.length} runs`} that it has started${runs.length === 1 ? "" : ", such as this one"}: ${first.headline}`;

/** What puts the first of them right, where it is a command on its machine: nobody should have to ask run after run for it. */
export function remediesOf({ runs: [first] }: DecidingRuns): NextCommand[] {
  if (first === undefined || !isActive(first.phase) || first.target.kind !== "machine") return [];
  return machineRemedies(first.steps.at(-1)?.cause ?? null, first.target.id);
}

export const explainDeciding = ({ runs: [first] }: DecidingRuns): NextCommand[] =>
  first === undefined
    ? []
    : [
        say(
          `explain run ${first.id}`,
          isActive(first.phase) ? "says what that run does, and what it waits for" : "says why that run has failed",
        ),
      ];

/** Nobody acts on a part of somebody else's work: the whole is what people ask for again. */
export const explainParent = ({ parent }: Run): NextCommand[] =>
  parent === null
    ? []
    : [say(`explain run ${parent.runId}`, `explains the run whose step ${parent.step} it is a part of`)];
