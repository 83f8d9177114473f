import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Run, StepStatus } from "../../runs/model/run.ts";
import { runListing } from "../../store/run/run-list.ts";
import { listDescendants, listRuns } from "../../store/run/runs.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { type ListPage, type ListRequest, pageList } from "../call/listing.ts";
import type { RunDeps } from "./deps.ts";
import { ALL_RUNS, matchesRun, type RunScope } from "./filter.ts";
import { checkRunId } from "./start-checks.ts";

export { jobStateOf } from "../../runs/model/job-state.ts";
export {
  currentStep,
  type Run,
  type RunPhase,
  STEP_STATES,
  type StepState,
  type StepStatus,
} from "../../runs/model/run.ts";

export async function getRun(deps: ServiceDeps, id: string, scope: RunScope = ALL_RUNS): Promise<Run> {
  const [run] = await listRuns(deps.db, { ids: [checkRunId(id)] });
  return checkFound(run, id, scope);
}

/** A run outside the scope is as if it did not exist. */
export function checkFound(run: Run | undefined, id: string, scope: RunScope): Run {
  if (run && matchesRun(scope, run)) return run;
  throw new AppError("not_found", `run ${id.slice(0, 80)} does not exist`, { next: "millwright run list" });
}

/** A run with those that its steps have started, the first first, and those that they have started. */
export interface RunTree {
  readonly run: Run;
  readonly children: readonly RunTree[];
}

export async function readRunTree({ db }: ServiceDeps, run: Run): Promise<RunTree> {
  const ofParent = Map.groupBy(await listDescendants(db, run.id), ({ parent }) => parent?.runId);
  const treeOf = (root: Run): RunTree => ({ run: root, children: (ofParent.get(root.id) ?? []).map(treeOf) });
  return treeOf(run);
}

/** What people may see of the receipt of a step; null where that is nothing. */
export function shownReceipt({ steps }: Pick<RunDeps, "steps">, { kind, receipt }: StepStatus): JsonObject | null {
  const shown = new Set<string>(steps.get(kind)?.showsOfReceipt);
  const parts = Object.entries(receipt ?? {}).filter(([name]) => shown.has(name));
  return parts.length === 0 ? null : Object.fromEntries(parts);
}

const MOST_RUNS = 1_000;

/** The newest first unless told. */
export const pageRuns = (deps: ServiceDeps, request: ListRequest, scope: RunScope): Promise<ListPage<Run>> =>
  pageList(deps, runListing, request, { clauses: scope, query: { scope }, defaultSize: MOST_RUNS, show: (run) => run });
