import { AppError } from "../../kernel/errors.ts";
import type { Run } from "../../runs/model/run.ts";
import { runListing } from "../../store/run/run-list.ts";
import { listRuns } from "../../store/run/runs.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { type ListPage, type ListRequest, pageList } from "../call/listing.ts";
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

/** The runs that steps of this one have started, the first first. */
export const listChildRuns = async ({ db }: ServiceDeps, { id }: Run): Promise<readonly Run[]> =>
  (await listRuns(db, { parentRunId: id })).toReversed();

const MOST_RUNS = 1_000;

/** The newest first unless told. */
export const pageRuns = (deps: ServiceDeps, request: ListRequest, scope: RunScope): Promise<ListPage<Run>> =>
  pageList(deps, runListing, request, { clauses: scope, query: { scope }, defaultSize: MOST_RUNS, show: (run) => run });
