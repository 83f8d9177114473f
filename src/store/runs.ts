import { z } from "zod";
import type { Json } from "../kernel/lifecycle.ts";
import type { LogLine } from "../kernel/outcome.ts";
import { type RunFacts, type RunThing, runLifecycle } from "../runs/lifecycle.ts";
import type { Plan } from "../runs/plan.ts";
import { isActive, RUN_ERROR_CODES, RUN_PHASES, type Run, STEP_STATES } from "../runs/run.ts";
import type { Queryable, Transaction } from "./database.ts";
import { failPoint } from "./fail-points.ts";
import { storableText } from "./json-text.ts";
import { machineStore } from "./machines.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "./state-columns.ts";
import type { Loaded, ThingStore } from "./things.ts";

const date = z.coerce.date().nullable().default(null);
const json: z.ZodType<Json> = z.json();
const stepSchema = z.object({
  name: z.string(),
  kind: z.string(),
  state: z.enum(STEP_STATES),
  retryCount: z.number(),
  startedAt: date,
  finishedAt: date,
  message: z.string(),
  carriedOver: z.boolean(),
  nextAttemptAt: date,
  attemptStartedAt: date,
  actingBy: z.string().nullable().default(null),
  actingAt: date,
  actedAt: date,
  evidence: z.record(z.string(), json).nullable(),
});
const factsSchema = z.object({
  scripts: z.record(z.string(), z.string()).default({}),
  steps: z.array(stepSchema).default([]),
  startedAt: date,
  finishedAt: date,
  error: z
    .object({
      code: z.enum(RUN_ERROR_CODES),
      message: z.string(),
      retryable: z.boolean(),
      details: z.record(z.string(), z.string()),
    })
    .nullable()
    .default(null),
  residue: z.array(z.string()).default([]),
});
const planSchema = z.object({
  planId: z.string(),
  displayName: z.string(),
  steps: z.array(
    z.object({
      name: z.string(),
      kind: z.string(),
      timeoutSeconds: z.number(),
      maxRetries: z.number(),
      payload: z.record(z.string(), json),
    }),
  ),
});

interface RunRow extends StateColumns {
  facts: unknown;
  machine_id: string;
  request_id: string;
  fingerprint: string;
  type: string;
  plan: unknown;
  params: Record<string, string>;
  job_id: string;
  attempt: number;
  previous_run_id: string | null;
  initiator: string;
  created_at: Date;
  cancel_requested_at: Date | null;
}

const COLUMNS = `${STATE_COLUMNS}, t.machine_id, t.request_id, t.fingerprint, t.type, t.plan, t.params, t.job_id, t.attempt,
  t.previous_run_id, t.initiator, t.created_at, t.cancel_requested_at`;

const parseFacts = (facts: unknown): RunFacts => factsSchema.parse(facts);
const parsePlan = (plan: unknown): Plan => planSchema.parse(plan) as Plan;

/** Runs with their machines, in two queries however many there are. */
async function load(db: Queryable, ids: readonly string[]): Promise<Loaded<RunThing>> {
  const rows = await db.query<RunRow>(`select ${COLUMNS} from runs t where t.id = any($1)`, [ids]);
  const machines = await machineStore.load(db, [...new Set(rows.map((row) => row.machine_id))]);
  const byId = new Map(machines.things.map((machine) => [machine.id as string, machine]));
  const things: RunThing[] = [];
  const unreadable = [];
  for (const row of rows) {
    const machine = byId.get(row.machine_id);
    try {
      if (!machine) throw new Error(`its machine ${row.machine_id} cannot be read`);
      things.push({
        ...parseStateColumns(row),
        id: row.id,
        machine,
        plan: parsePlan(row.plan),
        params: row.params,
        cancelRequestedAt: row.cancel_requested_at,
        facts: parseFacts(row.facts),
      });
    } catch (error) {
      unreadable.push({ id: row.id, error: error instanceof Error ? error.message : String(error) });
    }
  }
  return { things, unreadable };
}

export const runStore: ThingStore<RunThing> = {
  lifecycle: runLifecycle,
  table: "runs",
  requests: {},
  claimTarget: (run) => ({ kind: "machine", id: run.machine.id }),
  appendLog,
  load,
};

const MOST_LOG_BYTES = 4 * 1_024 * 1_024;
const CAPPED = "[the log of this run is full; what follows was not kept]\n";

/** Appends under the run's lock. A full log says so once, and then keeps nothing more. */
async function appendLog(tx: Transaction, id: string, lines: readonly LogLine[]): Promise<void> {
  const [row] = await tx.query<{ last: number; bytes: number }>(
    `select coalesce(max(seq), 0) as last, coalesce(sum(octet_length(data)), 0)::float8 as bytes from run_logs where run_id = $1`,
    [id],
  );
  const { last, bytes } = row ?? { last: 0, bytes: 0 };
  const kept: { line: LogLine; data: Buffer }[] = [];
  let size = bytes;
  for (const line of lines) {
    if (size > MOST_LOG_BYTES) break;
    const text = storableText(line.text);
    const isFull = size + Buffer.byteLength(text) > MOST_LOG_BYTES;
    const data = Buffer.from(isFull ? CAPPED : text, "utf8");
    size = isFull ? MOST_LOG_BYTES + 1 : size + data.length;
    kept.push({ line, data });
  }
  if (kept.length === 0) return;
  await tx.query(
    `insert into run_logs (run_id, seq, at, step, stream, data)
     select $1, l.* from unnest($2::bigint[], $3::timestamptz[], $4::text[], $5::text[], $6::bytea[]) as l`,
    [
      id,
      kept.map((_, index) => last + index + 1),
      kept.map(({ line }) => line.at),
      kept.map(({ line }) => line.step),
      kept.map(({ line }) => line.stream),
      kept.map(({ data }) => data),
    ],
  );
  failPoint("run-logs:appended", [{ kind: "run" }]);
}

export interface LogRow {
  readonly seq: number;
  readonly at: Date;
  readonly step: string;
  readonly stream: string;
  readonly data: Buffer;
}

export async function listLogs(db: Queryable, runId: string, after: number, limit: number): Promise<LogRow[]> {
  return db.query<LogRow>(
    `select seq, at, step, stream, data from run_logs where run_id = $1 and seq > $2 order by seq limit ${Math.floor(limit)}`,
    [runId, after],
  );
}

const phaseSchema = z.enum(RUN_PHASES);

function parseRun(row: RunRow): Run {
  const { scripts: _, ...facts } = parseFacts(row.facts);
  const phase = phaseSchema.parse(row.state);
  return {
    id: row.id,
    machineId: row.machine_id,
    requestId: row.request_id,
    type: row.type,
    plan: parsePlan(row.plan),
    params: row.params,
    phase,
    ...facts,
    // One that was canceled while it waited never had a look of its own that could have noted it.
    finishedAt: facts.finishedAt ?? (isActive(phase) ? null : row.state_since),
    jobId: row.job_id,
    attempt: row.attempt,
    previousRunId: row.previous_run_id,
    initiator: row.initiator,
    message: row.outcome?.reason ?? facts.error?.message ?? "",
    waitingFor: row.state === "PENDING" ? (row.outcome?.reason ?? "") : "",
    createdAt: row.created_at,
    cancelRequestedAt: row.cancel_requested_at,
    version: row.version,
  };
}

export interface RunFilter {
  readonly ids?: readonly string[];
  readonly machineId?: string;
  readonly activeOnly?: boolean;
  /** A condition over `t`, with its parameters from $1 on. */
  readonly where?: { readonly sql: string; readonly values: readonly unknown[] };
  /** Keyset paging, newest first. */
  readonly before?: { readonly createdAt: Date; readonly id: string };
  readonly limit?: number;
}

/** Newest first. */
export async function listRuns(db: Queryable, filter: RunFilter = {}): Promise<Run[]> {
  const values: unknown[] = [...(filter.where?.values ?? [])];
  const where = [filter.where?.sql ?? "true"];
  const at = (value: unknown) => `$${values.push(value)}`;
  if (filter.ids) where.push(`t.id = any(${at(filter.ids)})`);
  if (filter.machineId !== undefined) where.push(`t.machine_id = ${at(filter.machineId)}`);
  if (filter.activeOnly) where.push(`t.state in ('PENDING', 'RUNNING')`);
  if (filter.before) where.push(`(t.created_at, t.id) < (${at(filter.before.createdAt)}, ${at(filter.before.id)})`);
  const rows = await db.query<RunRow>(
    `select ${COLUMNS} from runs t where ${where.join(" and ")} order by t.created_at desc, t.id desc
      ${filter.limit === undefined ? "" : `limit ${Math.floor(filter.limit)}`}`,
    values,
  );
  return rows.map(parseRun);
}

/** The run that the request made, and what it asked for. */
export async function findByRequest(
  db: Queryable,
  machineId: string,
  requestId: string,
): Promise<{ readonly id: string; readonly fingerprint: string } | undefined> {
  const [row] = await db.query<{ id: string; fingerprint: string }>(
    "select id, fingerprint from runs where machine_id = $1 and request_id = $2",
    [machineId, requestId],
  );
  return row;
}
