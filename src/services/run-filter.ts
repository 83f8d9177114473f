import { type Filter, matchesFilter, parseFilter } from "../kernel/filter.ts";
import { jobStateOf } from "../runs/job-state.ts";
import { JOB_STATES, RUN_ACTIONS, RUN_PHASES, type Run } from "../runs/run.ts";
import { filterSql } from "../store/filter-sql.ts";
import type { JournalRow } from "../store/journal.ts";

const FIELDS = {
  run_id: "text",
  machine_id: "text",
  phase: RUN_PHASES,
  type: "text",
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
  machine_id: (run) => run.machineId,
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

type Event = Pick<JournalRow, "type" | "from" | "to">;
const PHASES: ReadonlySet<string | null> = new Set(RUN_PHASES);
const isPhase = (state: string | null): state is Run["phase"] => PHASES.has(state);

/** The run as it was before the event, in what a filter can see; undefined when there was none. */
function before(event: Event, run: Run): Run | undefined {
  if (event.type === "created") return undefined;
  return {
    ...run,
    ...(isPhase(event.from) && { phase: event.from }),
    ...(event.type === "cancel_requested" && { cancelRequestedAt: null }),
    ...(event.type === "marked_manual" && { manual: null }),
    ...(event.type === "continued" && { nextRunId: null }),
  };
}

/**
 * Whether the event is one of a run that matches: before it, after it, or by now. So who watches what is RUNNING is told when a
 * run ceases to be; and nobody needs to remember what was sent, so that it holds across a reconnect too.
 */
export function concerns(filter: RunFilter, event: Event, run: Run): boolean {
  const after = isPhase(event.to) ? { ...run, phase: event.to } : run;
  return [before(event, run), after, run].some((one) => one !== undefined && matchesRun(filter, one));
}
