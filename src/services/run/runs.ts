import type { Capability } from "../../capabilities/provider.ts";
import { AppError } from "../../kernel/errors.ts";
import type { MachineSpec } from "../../lifecycles/machine/machine.ts";
import { isActive, type Run } from "../../runs/model/run.ts";
import { findRunType } from "../../runs/model/run-types.ts";
import type { Workflows } from "../../runs/workflows/workflow.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { announce } from "../../store/lifecycle/journal.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import { type LogRow, listLogs } from "../../store/run/logs.ts";
import { createPastRuns } from "../../store/run/past-runs.ts";
import { runListing } from "../../store/run/run-list.ts";
import { listRuns, listRunsWithKeys, type RunKey } from "../../store/run/runs.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { type ListPage, type ListRequest, pageList } from "../call/listing.ts";
import type { EventSource } from "../system/watch.ts";
import { checkRunRequestId, fingerprintOf, newRunId } from "./creation.ts";
import {
  ALL_RUNS,
  concerns,
  matchesRun,
  mayConcern,
  parseRunFilter,
  type RunFilter,
  type RunScope,
  runCondition,
} from "./filter.ts";
import type { ReferenceDeps } from "./references.ts";
import { checkMachineId, checkRunId } from "./start-checks.ts";
import { startWithOthers } from "./starts.ts";

export { jobStateOf } from "../../runs/model/job-state.ts";
export {
  currentStep,
  type Run,
  type RunPhase,
  STEP_STATES,
  type StepState,
  type StepStatus,
} from "../../runs/model/run.ts";
export type { LogRow } from "../../store/run/logs.ts";

const KIND = "run";

/** What the server can do for a run: the kinds of steps, the scripts, and what the provider of a machine can. */
export interface RunDeps extends ServiceDeps, ReferenceDeps {
  /** Empty where the machine names a provider that this server does not have. */
  capabilitiesOf(spec: MachineSpec): ReadonlySet<Capability>;
  /** Absent: those of the server. */
  readonly workflows?: Workflows;
}

export interface StartRun {
  readonly requestId: string;
  readonly machineId: string;
  readonly type: string;
  readonly planId: string;
  readonly params: Readonly<Record<string, string>>;
}

/** Starts a run, or returns the one that the same request started before, under any race. */
export async function startRun(deps: RunDeps, caller: Caller, input: StartRun): Promise<Run> {
  const { requestId, type, planId, params } = input;
  checkRunRequestId(requestId);
  const machineId = checkMachineId(input.machineId);
  // A type that there is not is refused later, in its turn: until then it is as it was written.
  const asked = findRunType(type) ?? type;
  const fingerprint = fingerprintOf([asked, planId, Object.entries(params).sort()]);
  const run = { machineId, requestId, type, planId, params, fingerprint, id: newRunId(), caller };
  return startWithOthers(deps, run);
}

export async function getRun(deps: ServiceDeps, id: string, scope: RunScope = ALL_RUNS): Promise<Run> {
  const [run] = await listRuns(deps.db, { ids: [checkRunId(id)] });
  return checkFound(run, id, scope);
}

function checkFound(run: Run | undefined, id: string, scope: RunScope): Run {
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

/** Ends an active run in bounded time; asking again is harmless. */
export async function cancelRun(
  deps: ServiceDeps,
  caller: Caller,
  id: string,
  scope: RunScope = ALL_RUNS,
): Promise<Run> {
  checkRunId(id);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: KIND, id }]);
    const [found] = await listRuns(tx, { ids: [id] });
    const run = checkFound(found, id, scope);
    if (run.phase === "CANCELED" || run.cancelRequestedAt !== null) return;
    if (!isActive(run.phase)) {
      throw new AppError(
        "failed_precondition",
        `run ${id} has already ended: it ${run.phase === "SUCCEEDED" ? "SUCCEEDED" : "FAILED"}`,
      );
    }
    await recordChange(tx, storeOf(deps.stores, KIND), {
      id,
      ...doneBy(caller),
      type: "cancel_requested",
      set: { cancel_requested_at: nowOf(deps) },
    });
    await work.wake(tx, [{ kind: KIND, id }]);
    await announce(tx);
  });
  return getRun(deps, id);
}

export interface RunEvent {
  readonly at: Date;
  /** Right after the change, however late it is told. */
  readonly run: Run;
  readonly message: string;
  /** That of the snapshots at the beginning is where they were taken. */
  readonly cursor: string;
}

/**
 * Without a cursor: one snapshot of each matching active run, then every change; with one: what came after it. The change by which
 * a run ceases to match is told as well.
 */
export async function* watchRuns(
  deps: ServiceDeps,
  events: EventSource,
  query: { readonly filter: string; readonly cursor: string; readonly scope?: RunScope },
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const filter = [...(query.scope ?? ALL_RUNS), ...parseRunFilter(query.filter, () => nowOf(deps))];
  const past = createPastRuns(deps.db);
  // By the version that its snapshot showed: what led up to that comes after the cursor as well, and would take the run back.
  const shown = new Map<string, number>();
  let needsSnapshots = query.cursor === "";
  const from = needsSnapshots ? ("now" as const) : { cursor: query.cursor };
  for await (const item of events.follow(from, { kinds: [KIND] }, signal)) {
    if (item.type === "bookmark") {
      // The first one says where "now" is; later ones only say that nothing happened.
      if (needsSnapshots) yield* snapshots(deps, filter, item.cursor, shown);
      needsSnapshots = false;
      continue;
    }
    const { row } = item;
    const snapshot = shown.get(row.id);
    if (snapshot !== undefined && row.version <= snapshot) continue;
    shown.delete(row.id);
    const [now] = await listRuns(deps.db, { ids: [row.id] });
    if (!now || !mayConcern(filter, now)) continue;
    const run = await past.after(now, row);
    if (concerns(filter, row, { after: run, now }))
      yield { at: row.at, run, message: row.reason ?? row.type, cursor: row.cursor };
  }
}

const SNAPSHOT_PAGE = 200;

/** Page by page, since a fleet may have as many active runs as machines. What changes meanwhile is told after them. */
async function* snapshots(
  deps: ServiceDeps,
  filter: RunFilter,
  cursor: string,
  shown: Map<string, number>,
): AsyncGenerator<RunEvent> {
  let before: RunKey | undefined;
  do {
    const page = await listRunsWithKeys(deps.db, {
      where: runCondition(filter),
      activeOnly: true,
      limit: SNAPSHOT_PAGE,
      ...(before && { before }),
    });
    for (const { run } of page) {
      shown.set(run.id, run.version);
      yield { at: nowOf(deps), run, message: "snapshot", cursor };
    }
    before = page.length < SNAPSHOT_PAGE ? undefined : page.at(-1)?.key;
  } while (before !== undefined);
}

const LOG_PAGE = 500;

/** From the first chunk, or after the one named; ends when the run has ended and all was sent. */
export async function* streamRunLogs(
  deps: ServiceDeps,
  events: EventSource,
  query: { readonly runId: string; readonly after: number; readonly follow: boolean; readonly scope?: RunScope },
  signal: AbortSignal,
): AsyncGenerator<LogRow> {
  await getRun(deps, query.runId, query.scope);
  if (query.after < 0) {
    const why = `after: must be the seq of a chunk, or 0 for the first, got ${query.after}`;
    throw new AppError("invalid_argument", why, { field: "after" });
  }
  let after = Math.min(query.after, Number.MAX_SAFE_INTEGER); // beyond it the database knows no number
  const drain = async function* (): AsyncGenerator<LogRow> {
    for (;;) {
      const rows = await listLogs(deps.db, query.runId, after, LOG_PAGE);
      yield* rows;
      after = rows.at(-1)?.seq ?? after;
      if (rows.length < LOG_PAGE) return;
    }
  };
  const items = events.follow("now", { kinds: [KIND], ids: [query.runId] }, signal);
  for await (const _ of items) {
    // Whether it has ended is asked before the log is read: what it said last is then there.
    const { phase } = await getRun(deps, query.runId);
    yield* drain();
    if (!query.follow || !isActive(phase)) return;
  }
}
