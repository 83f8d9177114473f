import { z } from "zod";
import type { Thing } from "../../kernel/lifecycle.ts";
import type { ParentStep } from "../../runs/children/child-run.ts";
import { type RunThing, runLifecycle } from "../../runs/model/lifecycle.ts";
import {
  isActive,
  type ManualMark,
  type MediumRefusal,
  RUN_ACTIONS,
  RUN_PHASES,
  type Run,
} from "../../runs/model/run.ts";
import { claimedBy } from "../../runs/targets/claimed.ts";
import type { LoadedTarget, RunTarget } from "../../runs/targets/run-target.ts";
import { unusedDuring } from "../../runs/targets/unused.ts";
import type { Place } from "../lifecycle/places.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import {
  ForAnotherReplica,
  type Loaded,
  nameOf,
  parseRows,
  type ThingKey,
  type ThingStore,
  type ThingStores,
} from "../lifecycle/things.ts";
import type { Queryable } from "../postgres/database.ts";
import { parseChildren } from "./children.ts";
import { parseFactsPatch, parseRunFacts, parseRunPlan } from "./facts.ts";
import { appendLogs } from "./logs.ts";
import { runOrders } from "./orders.ts";
import { runAttention } from "./run-attention.ts";

export interface RunRow extends StateColumns {
  facts: unknown;
  target_kind: string;
  target_id: string;
  machine_id: string | null;
  parent_run_id: string | null;
  parent_step: string | null;
  parent_round: number | null;
  holder_kind: string | null;
  holder_id: string | null;
  request_id: string;
  fingerprint: string;
  type: string;
  plan: unknown;
  params: Record<string, string>;
  job_id: string;
  attempt: number;
  previous_run_id: string | null;
  next_run_id: string | null;
  action: string;
  manual_at: Date | null;
  manual_by: string | null;
  manual_comment: string | null;
  initiator: string;
  created_at: Date;
  cancel_requested_at: Date | null;
  abandoned_at: Date | null;
  installer_seen: InstallerRecord | null;
}

export const RUN_COLUMNS = `${STATE_COLUMNS}, t.target_kind, t.target_id, t.machine_id, t.parent_run_id, t.parent_step, t.parent_round, t.holder_kind, t.holder_id, t.request_id, t.fingerprint, t.type, t.plan, t.params, t.job_id, t.attempt,
  t.previous_run_id, t.next_run_id, t.action, t.manual_at, t.manual_by, t.manual_comment, t.initiator, t.created_at, t.cancel_requested_at, t.abandoned_at, t.installer_seen`;

/** How far each step of a run `c` came, in their order. */
const LEFT_BY_STEPS = `(select jsonb_agg(jsonb_build_object('kind', s.step ->> 'kind', 'component', s.step -> 'payload' ->> 'component',
      'version', s.step -> 'payload' ->> 'version', 'activation', s.step -> 'payload' ->> 'activation', 'state', v.visit ->> 'state',
      'isBegun', v.visit ->> 'actingAt' is not null, 'verdict', coalesce(v.visit ->> 'verdict', '')) order by s.place)
    from jsonb_array_elements(c.plan -> 'steps') with ordinality s (step, place)
         left join lateral (select visit from jsonb_array_elements(c.facts -> 'steps') visit where visit ->> 'name' = s.step ->> 'name' limit 1) v on true)`;

/** Found by an index that holds children alone: for runs without any it costs next to nothing, and no statement of its own. */
const CHILDREN = `(select jsonb_agg(jsonb_build_object(
    'id', c.id, 'step', c.parent_step, 'round', c.parent_round, 'kind', c.target_kind, 'target', c.target_id, 'phase', c.state,
    'message', coalesce(c.facts -> 'error' ->> 'message', c.outcome ->> 'reason', ''), 'isCanceling', c.cancel_requested_at is not null,
    'cause', c.facts -> 'error' -> 'details' ->> 'cause', 'isUnproven', coalesce(c.facts -> 'unproven' <> 'null', false),
    'left', case when c.state = 'CANCELED' then ${LEFT_BY_STEPS} end)
    order by c.created_at, c.id) from runs c where c.parent_run_id = t.id)`;

function parentOf({ parent_run_id: runId, parent_step: step, parent_round: round }: RunRow): ParentStep | null {
  return runId === null || step === null || round === null ? null : { runId, step, round };
}

const holderOf = ({ id, holder_kind, holder_id }: RunRow): ThingKey =>
  holder_kind === null || holder_id === null ? { kind: runLifecycle.kind, id } : { kind: holder_kind, id: holder_id };

const manualOf = ({ manual_at: at, manual_by: by, manual_comment: comment }: RunRow): ManualMark | null =>
  at === null ? null : { at, by: by ?? "", comment: comment ?? "" };

const targetOf = (row: RunRow): RunTarget => ({ kind: row.target_kind, id: row.target_id });

/**
 * The targets of many runs by their names: one query a kind of target. One that cannot be read is why its runs cannot be either. A kind
 * that this version does not know is one of a later version: its replicas run beside this one during an upgrade, and work on those runs.
 */
async function loadTargets(db: Queryable, rows: readonly RunRow[], stores: ThingStores) {
  const found = new Map<string, Thing | Error>();
  for (const [kind, ofKind] of Map.groupBy(rows, (row) => row.target_kind)) {
    const store = stores.get(kind);
    if (store === undefined) continue;
    const ids = [...new Set(ofKind.map((row) => row.target_id))];
    const { things, unreadable } = await store.load(db, ids);
    for (const thing of things) found.set(nameOf({ kind, id: thing.id }), thing);
    for (const { id, error } of unreadable) found.set(nameOf({ kind, id }), new Error(error));
  }
  return (target: RunTarget): LoadedTarget => {
    if (!stores.has(target.kind))
      throw new ForAnotherReplica(`this server does not know ${target.kind} as a target of runs`);
    const thing = found.get(nameOf(target)) ?? null;
    if (thing instanceof Error) throw new Error(`its ${target.kind} ${target.id} cannot be read: ${thing.message}`);
    return { ...target, thing };
  };
}

/** Runs with what they work on: one query for the runs, and one a kind of target, however many there are. */
const loading =
  (stores: ThingStores) =>
  async (db: Queryable, ids: readonly string[]): Promise<Loaded<RunThing>> => {
    const text = `select ${RUN_COLUMNS}, ${CHILDREN} as children from runs t where t.id = any($1)`;
    const rows = await db.query<RunRow & { children: unknown }>({ hot: true, text, values: [ids] });
    const withThing = await loadTargets(db, rows, stores);
    return parseRows(rows, (row) => ({
      ...parseStateColumns(row),
      id: row.id,
      type: row.type,
      target: withThing(targetOf(row)),
      parent: parentOf(row),
      children: parseChildren(row.children),
      holder: holderOf(row),
      jobId: row.job_id,
      plan: parseRunPlan(row.plan),
      params: row.params,
      action: actionSchema.parse(row.action),
      cancelRequestedAt: row.cancel_requested_at,
      abandonedAt: row.abandoned_at,
      manual: manualOf(row),
      installerSeen: row.installer_seen?.order ?? null,
      mediumRefused: row.installer_seen?.refused ?? null,
      facts: parseRunFacts(row.facts),
    }));
  };

/**
 * A pass of a run whose cancel was requested since, or whose installer has reported, is useless: its outcome will not be written. And an
 * installer may be over before the pass has waited for a system that is not there yet.
 */
async function overtaken(db: Queryable, runs: readonly RunThing[]): Promise<readonly string[]> {
  const going = runs.filter(({ cancelRequestedAt }) => cancelRequestedAt === null);
  if (going.length === 0) return [];
  const text = `select r.id from runs r join unnest($1::text[], $2::text[]) as known(id, seen) on known.id = r.id
                 where r.cancel_requested_at is not null or r.installer_seen ->> 'order' is distinct from known.seen`;
  const values = [going.map(({ id }) => id), going.map(({ installerSeen }) => installerSeen ?? null)];
  return (await db.query<{ id: string }>({ hot: true, text, values })).map(({ id }) => id);
}

/** What is known of the installer of a run's latest installation. */
export type InstallerRecord = {
  /** The installation whose installer has reported that it began (`installerMark`). */
  readonly order?: string;
  /** The installation whose medium was refused to its BMC, and why. */
  readonly refused?: MediumRefusal;
};

export async function findInstallerRecord(db: Queryable, id: string): Promise<InstallerRecord> {
  const [row] = await db.query<{ seen: InstallerRecord | null }>(
    "select installer_seen as seen from runs where id = $1",
    [id],
  );
  return row?.seen ?? {};
}

/** A run is where its target is. */
const placeAmong = (stores: ThingStores): Place => ({
  table: "runs",
  with: [...stores].flatMap(([kind, { place }]) =>
    place === undefined || kind === runLifecycle.kind
      ? []
      : [{ place, id: (row) => `${row}.target_id`, when: (row) => `${row}.target_kind = '${kind}'` }],
  ),
});

/** Of whatever things there are, a run can work on all. */
const storeAmong = (stores: ThingStores): ThingStore<RunThing> => ({
  lifecycle: runLifecycle,
  table: "runs",
  place: placeAmong(stores),
  requests: {},
  claims(run) {
    const { holder } = run;
    const unused = unusedDuring(run);
    return { targets: claimedBy(run), holder, ...(unused.length > 0 && { unused }) };
  },
  related: {
    // Loaded whole with the run (`loading`). What the run's start and end mean for it commits with them, and wakes it.
    target: { of: ({ target: { kind, id } }) => ({ kind, id }) },
    parent: {
      of: ({ parent }) => parent && { kind: runLifecycle.kind, id: parent.runId },
      // What a parent waits for is that its children end.
      wakes: { butFor: ["started", "acting"] },
    },
  },
  appendLogs,
  attention: runAttention,
  orders: runOrders,
  load: loading(stores),
  factsWith: ({ facts }, patch) => ({ ...facts, ...parseFactsPatch(patch) }),
  goesOnUnloaded: true,
  overtaken,
});
export const runStore: ThingStore<RunThing> = { ...storeAmong(new Map()), among: storeAmong };

const phaseSchema = z.enum(RUN_PHASES);
const actionSchema = z.enum(RUN_ACTIONS);

export function parseRun(row: RunRow): Run {
  const { scripts: _, ...facts } = parseRunFacts(row.facts);
  const phase = phaseSchema.parse(row.state);
  return {
    id: row.id,
    target: targetOf(row),
    machineId: row.machine_id,
    parent: parentOf(row),
    holder: holderOf(row),
    requestId: row.request_id,
    type: row.type,
    plan: parseRunPlan(row.plan),
    params: row.params,
    phase,
    ...facts,
    // One that was canceled while it waited never had a pass of its own that could have noted it.
    finishedAt: facts.finishedAt ?? (isActive(phase) ? null : row.state_since),
    jobId: row.job_id,
    attempt: row.attempt,
    previousRunId: row.previous_run_id,
    nextRunId: row.next_run_id,
    action: actionSchema.parse(row.action),
    manual: manualOf(row),
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
  readonly target?: RunTarget;
  readonly activeOnly?: boolean;
  /** A condition over `t`, with its parameters from $1 on. */
  readonly where?: { readonly sql: string; readonly values: readonly unknown[] };
  /** Keyset paging, newest first: the key of the last run of the page before. */
  readonly before?: RunKey;
  readonly limit?: number;
}

/** Where a run stands in lists. The time is the database's own text: a `Date` has no microseconds, and would leave runs out. */
export interface RunKey {
  readonly createdAt: string;
  readonly id: string;
}

const CREATED_AT = `to_char(t.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/** Newest first. */
export async function listRuns(db: Queryable, filter: RunFilter = {}): Promise<Run[]> {
  return (await listRunsWithKeys(db, filter)).map(({ run }) => run);
}

export async function listRunsWithKeys(
  db: Queryable,
  filter: RunFilter,
): Promise<{ readonly run: Run; readonly key: RunKey }[]> {
  const values: unknown[] = [...(filter.where?.values ?? [])];
  const where = [filter.where?.sql ?? "true"];
  const at = (value: unknown) => `$${values.push(value)}`;
  if (filter.ids) where.push(`t.id = any(${at(filter.ids)})`);
  if (filter.machineId !== undefined) where.push(`t.machine_id = ${at(filter.machineId)}`);
  if (filter.target) where.push(`t.target_kind = ${at(filter.target.kind)} and t.target_id = ${at(filter.target.id)}`);
  if (filter.activeOnly) where.push(`t.state in ('PENDING', 'RUNNING')`);
  if (filter.before)
    where.push(`(t.created_at, t.id) < (${at(filter.before.createdAt)}::timestamptz, ${at(filter.before.id)})`);
  const isOneOfFew = filter.where === undefined && filter.limit === undefined;
  const rows = await db.query<RunRow & { created_key: string }>({
    text: `select ${RUN_COLUMNS}, ${CREATED_AT} as created_key from runs t where ${where.join(" and ")}
            order by t.created_at desc, t.id desc ${filter.limit === undefined ? "" : `limit ${Math.floor(filter.limit)}`}`,
    values,
    ...(isOneOfFew && { hot: true }),
  });
  return rows.map((row) => ({ run: parseRun(row), key: { createdAt: row.created_key, id: row.id } }));
}

/** The runs that its steps have started, those that they have started, and so on; the first first. */
export async function listDescendants(db: Queryable, id: string): Promise<Run[]> {
  const rows = await db.query<RunRow>(
    `with recursive below as (
       select id from runs where parent_run_id = $1
       union select c.id from runs c join below on c.parent_run_id = below.id)
     select ${RUN_COLUMNS} from runs t where t.id in (select id from below) order by t.created_at, t.id`,
    [id],
  );
  return rows.map(parseRun);
}

/** The runs that requests made, and what they asked for. */
export async function findByRequests(
  db: Queryable,
  requests: readonly { readonly machineId: string; readonly requestId: string }[],
): Promise<
  {
    readonly id: string;
    readonly machineId: string;
    readonly fingerprint: string;
    readonly parentRunId: string | null;
  }[]
> {
  return db.query({
    hot: true,
    text: `select t.id, t.machine_id as "machineId", t.fingerprint, t.parent_run_id as "parentRunId" from unnest($1::text[], $2::text[]) as r(machine_id, request_id)
             join runs t using (machine_id, request_id)`,
    values: [requests.map(({ machineId }) => machineId), requests.map(({ requestId }) => requestId)],
  });
}

/** The run that a request made on a target before; of those that somebody asked for. */
export async function findOnTarget(
  db: Queryable,
  { target, requestId }: { readonly target: RunTarget; readonly requestId: string },
): Promise<{ readonly id: string; readonly fingerprint: string } | undefined> {
  const text = `select id, fingerprint from runs
    where target_kind = $1 and target_id = $2 and request_id = $3 and parent_run_id is null`;
  return (await db.query<{ id: string; fingerprint: string }>(text, [target.kind, target.id, requestId]))[0];
}

/** The digests of its scripts as they were frozen into the run. */
export async function getFrozenScripts(db: Queryable, id: string): Promise<Readonly<Record<string, string>>> {
  const [row] = await db.query<{ facts: unknown }>("select facts from runs where id = $1", [id]);
  return row === undefined ? {} : parseRunFacts(row.facts).scripts;
}

/** The attempt that speaks for the job. */
export async function getLatestAttempt(db: Queryable, jobId: string): Promise<Run | undefined> {
  const rows = await db.query<RunRow>(
    `select ${RUN_COLUMNS} from runs t where t.job_id = $1 order by t.attempt desc limit 1`,
    [jobId],
  );
  return rows.map(parseRun)[0];
}

/** Runs that are active, of those named or of all. */
export async function listActiveIds(
  db: Queryable,
  { ids, notCanceled }: { readonly ids?: readonly string[]; readonly notCanceled?: true } = {},
): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `select id from runs where state in ('PENDING', 'RUNNING') and ($1::text[] is null or id = any($1))
       ${notCanceled ? "and cancel_requested_at is null" : ""} order by id`,
    [ids ?? null],
  );
  return rows.map(({ id }) => id);
}
