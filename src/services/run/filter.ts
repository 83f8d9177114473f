import { type Filter, matchesFilter, parseFilter } from "../../kernel/filter.ts";
import { jobStateOf } from "../../runs/model/job-state.ts";
import { JOB_STATES, RUN_ACTIONS, RUN_PHASES, type Run } from "../../runs/model/run.ts";
import { findRunType, RUN_TYPES } from "../../runs/model/run-types.ts";
import type { JournalRow } from "../../store/lifecycle/journal.ts";
import { filterSql } from "../../store/postgres/filter-sql.ts";
import { runBefore } from "../../store/run/past-runs.ts";

const FIELDS = {
  run_id: "text",
  machine_id: "text",
  target_kind: "text",
  target_id: "text",
  phase: RUN_PHASES,
  // In any spelling that starts a run; the empty one is that of runs that were started by their plan alone.
  type: { words: RUN_TYPES, read: (text: string) => (text === "" ? "" : findRunType(text)) },
  plan_id: "text",
  request_id: "text",
  job_id: "text",
  job_state: JOB_STATES,
  action: RUN_ACTIONS,
} as const;
type Field = keyof typeof FIELDS;

const COLUMNS: Readonly<Record<Field, string>> = {
  run_id: "t.id",
  machine_id: "t.machine_id",
  target_kind: "t.target_kind",
  target_id: "t.target_id",
  phase: "t.state",
  type: "t.type",
  plan_id: "t.plan_id",
  request_id: "t.request_id",
  job_id: "t.job_id",
  job_state: "t.job_state",
  action: "t.action",
};

const VALUES: Readonly<Record<Field, (run: Run) => string>> = {
  run_id: (run) => run.id,
  machine_id: (run) => run.machineId ?? "",
  target_kind: (run) => run.target.kind,
  target_id: (run) => run.target.id,
  phase: (run) => run.phase,
  type: (run) => run.type,
  plan_id: (run) => run.plan.planId,
  request_id: (run) => run.requestId,
  job_id: (run) => run.jobId,
  job_state: (run) => jobStateOf(run) ?? "",
  action: (run) => run.action,
};

export type RunFilter = Filter<Field>;

export const parseRunFilter = (text: string): RunFilter => parseFilter(text, FIELDS);

/** As a condition over `t`, with its parameters from $1 on. */
export function runCondition(filter: RunFilter): { readonly sql: string; readonly values: unknown[] } {
  const values: unknown[] = [];
  return { sql: filterSql(filter, COLUMNS, values), values };
}

export const matchesRun = (filter: RunFilter, run: Run): boolean =>
  matchesFilter(filter, ({ field }) => VALUES[field](run));

/** Of a run these change. */
const CHANGING: ReadonlySet<Field> = new Set(["phase", "job_state"]);

/** Whether any event of the run can be one that the filter admits, by what never changes of it. */
export const mayConcern = (filter: RunFilter, run: Run): boolean =>
  matchesRun(
    filter.filter(({ field }) => !CHANGING.has(field)),
    run,
  );

/**
 * Whether the event is one of a run that matches: before it, after it, or by now. So who watches what is RUNNING is told when a
 * run ceases to be; and nobody needs to remember what was sent, so that it holds across a reconnect too.
 */
export function concerns(
  filter: RunFilter,
  event: JournalRow,
  { after, now }: { readonly after: Run; readonly now: Run },
): boolean {
  const before = event.type === "created" ? [] : [runBefore(after, event)];
  return [...before, after, now].some((run) => matchesRun(filter, run));
}
