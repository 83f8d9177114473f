import { CAUSE_WORDS } from "../../kernel/causes.ts";
import { causeInDetails } from "../../kernel/stored-cause.ts";
import { jobStateOf } from "../../runs/model/job-state.ts";
import { findRunType, RUN_TYPES } from "../../runs/model/plan/run-types.ts";
import { isActive, JOB_STATES, RUN_ACTIONS, RUN_PHASES, type Run } from "../../runs/model/run.ts";
import { defineFields } from "../postgres/list-fields.ts";
import { createListing } from "../postgres/listing.ts";
import { JOB_STATE } from "./job-state-sql.ts";
import { parseRun, RUN_COLUMNS, type RunRow } from "./runs.ts";

/** In any spelling that starts a run; the empty one is that of runs that were started by their plan alone. */
const typeWords = { words: RUN_TYPES, read: (text: string) => (text === "" ? "" : findRunType(text)) };

/** One that was canceled while it waited never had a pass of its own that could have noted its end. */
const FINISHED_AT = `coalesce(t.facts ->> 'finishedAt', case when t.state not in ('PENDING', 'RUNNING') then
  to_char(t.state_since at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') end)`;

/** Why it failed; while it is active, what is in the way of the step that it is at. */
function causeOfRun({ phase, error, steps }: Run): string {
  if (!isActive(phase)) return causeInDetails(error?.details ?? {})?.code ?? "";
  const underWay = steps.filter(({ state }) => state === "WAITING" || state === "RUNNING");
  return underWay.flatMap(({ cause }) => cause?.code ?? []).at(-1) ?? "";
}
const CAUSE = `coalesce(case when t.state in ('PENDING', 'RUNNING') then jsonb_path_query_array(t.facts,
  'lax $.steps[*] ? (@.state == "WAITING" || @.state == "RUNNING").cause.code') ->> -1
  else t.facts -> 'error' -> 'details' ->> 'cause' end, '')`;

// biome-ignore format: a table is read by its columns
export const RUN_FIELDS = defineFields<Run>()({
  run_id:      { type: "text", sql: "t.id", sort: "set", doc: "The run's id.", of: ({ id }) => id },
  machine_id:  { type: "text", sql: "t.machine_id", sort: "nullable", doc: "The machine whose run slot it takes.", of: ({ machineId }) => machineId },
  target_kind: { type: "text", sql: "t.target_kind", sort: "set", doc: "The kind of the thing that it works on, such as machine.", of: ({ target }) => target.kind },
  target_id:   { type: "text", sql: "t.target_id", sort: "set", doc: "The thing that it works on.", of: ({ target }) => target.id },
  parent_run_id: { type: "text", sql: "t.parent_run_id", doc: "The run whose step started it; empty for runs that somebody asked for.", of: ({ parent }) => parent?.runId ?? null },
  phase:       { type: RUN_PHASES, sql: "t.state", sort: "set", doc: "How far it is.", of: ({ phase }) => phase },
  type:        { type: typeWords, sql: "t.type", sort: "set", doc: "In any spelling that starts a run; empty for runs that were started by their plan alone.", of: ({ type }) => type },
  plan_id:     { type: "text", sql: "t.plan_id", sort: "set", doc: "The plan that it carries out.", of: ({ plan }) => plan.planId },
  request_id:  { type: "text", sql: "t.request_id", doc: "The caller's key of the request that made it.", of: ({ requestId }) => requestId },
  job_id:      { type: "text", sql: "t.job_id", sort: "set", doc: "The job that it is an attempt at.", of: ({ jobId }) => jobId },
  job_state:   { type: JOB_STATES, sql: JOB_STATE, doc: "Where the job stands; only the latest attempt at it tells.", of: (run) => jobStateOf(run) ?? "" },
  cause:       { type: CAUSE_WORDS, sql: CAUSE, doc: "Why it failed, or what is in the way of its present step: a cause; empty where nothing is.", of: causeOfRun },
  attempt:     { type: "number", sql: "t.attempt", sort: "set", doc: "Which attempt at the job it is, from 1.", of: ({ attempt }) => attempt },
  action:      { type: RUN_ACTIONS, sql: "t.action", doc: "What made it: start, or what people did with the attempt before.", of: ({ action }) => action },
  initiator:   { type: "text", sql: "t.initiator", sort: "set", doc: "Who started it.", of: ({ initiator }) => initiator },
  created_at:  { type: "time", sql: "t.created_at", sort: "set", doc: "When it was made.", of: ({ createdAt }) => createdAt },
  started_at:  { type: "time", sql: { isoTime: "(t.facts ->> 'startedAt')" }, sort: "nullable", doc: "When its first step began.", of: ({ startedAt }) => startedAt },
  finished_at: { type: "time", sql: { isoTime: FINISHED_AT }, sort: "nullable", doc: "When it ended.", of: ({ finishedAt }) => finishedAt },
});

export type RunField = keyof typeof RUN_FIELDS & string;

/** The newest first. */
export const runListing = createListing<RunField, Run, RunRow>({
  name: "runs",
  kind: "run",
  fields: RUN_FIELDS,
  id: "run_id",
  order: [{ field: "created_at", descending: true }],
  columns: RUN_COLUMNS,
  from: "runs t",
  parse: parseRun,
});
