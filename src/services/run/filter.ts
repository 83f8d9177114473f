import { type Filter, judgeFilter } from "../../kernel/filter/filter.ts";
import { parseFilter } from "../../kernel/filter/parse-filter.ts";
import type { Run } from "../../runs/model/run.ts";
import type { JournalRow } from "../../store/lifecycle/journal.ts";
import { filterSql } from "../../store/postgres/filter-sql.ts";
import { columnsOf, filterFieldsOf, readField } from "../../store/postgres/list-fields.ts";
import { runBefore } from "../../store/run/past-runs.ts";
import { RUN_FIELDS, type RunField } from "../../store/run/run-list.ts";

export type RunFilter = Filter<RunField>;

export const parseRunFilter = (text: string, now?: () => Date): RunFilter =>
  parseFilter(text, filterFieldsOf(RUN_FIELDS), now);

/** Which runs a contract knows, whatever its callers ask for. */
export type RunScope = RunFilter;
export const ALL_RUNS: RunScope = [];
/** Runs that take a machine's run slot: all that baremetal.v1 knows. */
export const WITH_SLOT: RunScope = [{ field: "machine_id", operator: "!=", value: "" }];
/** Runs that somebody asked for, and none that another run has started. */
export const ASKED_FOR: RunScope = [{ field: "parent_run_id", operator: "=", value: "" }];

const COLUMNS = columnsOf(RUN_FIELDS);

/** As a condition over `t`, with its parameters from $1 on. */
export function runCondition(filter: RunFilter): { readonly sql: string; readonly values: unknown[] } {
  const values: unknown[] = [];
  return { sql: filterSql(filter, COLUMNS, values), values };
}

export const matchesRun = (filter: RunFilter, run: Run): boolean =>
  judgeFilter(filter, readField(RUN_FIELDS, run, run.createdAt)) === true;

/** Of a run these change. */
const CHANGING: ReadonlySet<RunField> = new Set(["phase", "job_state", "cause", "started_at", "finished_at"]);

/** Whether any event of the run can be one that the filter admits, by what never changes of it. */
export function mayConcern(filter: RunFilter, run: Run): boolean {
  const read = readField(RUN_FIELDS, run, run.createdAt);
  return judgeFilter(filter, (term) => (CHANGING.has(term.field) ? undefined : read(term))) !== false;
}

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
