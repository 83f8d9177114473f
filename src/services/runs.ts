import { createHash, randomUUID } from "node:crypto";
import type { Capability } from "../capabilities/provider.ts";
import { AppError } from "../kernel/errors.ts";
import { type FilterFields, parseFilter } from "../kernel/filter.ts";
import { parseMachineId } from "../kernel/ids.ts";
import type { Machine } from "../lifecycles/machine/machine.ts";
import type { Plan } from "../runs/plan.ts";
import { isActive, RUN_PHASES, type Run } from "../runs/run.ts";
import { chooseRunType } from "../runs/run-types.ts";
import { capabilitiesFor } from "../runs/step.ts";
import { recordChange } from "../store/changes.ts";
import { create } from "../store/create.ts";
import type { Transaction } from "../store/database.ts";
import { filterSql } from "../store/filter-sql.ts";
import { announce } from "../store/journal.ts";
import { lockThings } from "../store/locks.ts";
import { machineStore } from "../store/machines.ts";
import { findByRequest, type LogRow, listLogs, listRuns } from "../store/runs.ts";
import { storeOf } from "../store/things.ts";
import * as work from "../store/work.ts";
import type { Caller } from "./caller.ts";
import type { ServiceDeps } from "./deps.ts";
import { actorOf, doneBy } from "./initiator.ts";
import { checkPageSize, cutPage, type Page, parsePageToken } from "./paging.ts";
import { findPlan } from "./plans.ts";
import { checkReferences, type ReferenceDeps } from "./run-references.ts";
import type { EventSource } from "./watch.ts";

export { currentStep, type Run, type RunPhase, type StepState, type StepStatus } from "../runs/run.ts";
export type { LogRow } from "../store/runs.ts";

const KIND = "run";
const machineKey = (id: string) => ({ kind: "machine", id });
const LONGEST_REQUEST_ID = 128;

/** What the server can do for a run: the kinds of steps, the scripts, and what the provider of a machine can. */
export interface RunDeps extends ServiceDeps, ReferenceDeps {
  capabilitiesOf(provider: string): ReadonlySet<Capability>;
}

export interface StartRun {
  readonly requestId: string;
  readonly machineId: string;
  readonly type: string;
  readonly planId: string;
  readonly params: Readonly<Record<string, string>>;
}

/**
 * Starts a run, or returns the one that the same request started before, under any race: the machine is locked, and the database
 * holds one run a request and one active run a machine.
 */
export async function startRun(deps: RunDeps, caller: Caller, input: StartRun): Promise<Run> {
  const { requestId } = input;
  if (requestId === "" || requestId.length > LONGEST_REQUEST_ID) {
    throw new AppError("invalid_argument", `request_id: 1 to ${LONGEST_REQUEST_ID} characters are required`, {
      field: "request_id",
    });
  }
  if (input.machineId === "")
    throw new AppError("invalid_argument", "machine_id: is required", { field: "machine_id" });
  const machineId = parseMachineId(input.machineId, "machine_id");
  const { type, planId, params } = input;
  const fingerprint = createHash("sha256")
    .update(JSON.stringify([type, planId, Object.entries(params).sort()]))
    .digest("hex");

  const id = await deps.db.transaction(async (tx) => {
    await lockThings(tx, [machineKey(machineId)]);
    const known = await findByRequest(tx, machineId, requestId);
    if (known) {
      if (known.fingerprint === fingerprint) return known.id;
      throw new AppError(
        "already_exists",
        `request_id: ${requestId} started run ${known.id} with another type, plan or params; choose a new one`,
        {
          field: "request_id",
          next: `millwright run show ${known.id}`,
        },
      );
    }
    return insertRun(tx, deps, caller, { ...input, machineId, fingerprint });
  });
  return getRun(deps, id);
}

async function insertRun(
  tx: Transaction,
  deps: RunDeps,
  caller: Caller,
  input: StartRun & { readonly fingerprint: string },
): Promise<string> {
  const chosen = chooseRunType(input);
  const plan = await findPlan(tx, chosen.planId);
  const [machine] = (await machineStore.load(tx, [input.machineId])).things;
  if (!machine)
    throw new AppError("not_found", `machine ${input.machineId} does not exist`, { next: "millwright machine list" });
  await checkMoment(tx, machine);
  checkCapabilities(deps, machine, plan);
  const scripts = await checkReferences(tx, deps, { machine, plan });
  const id = `run-${randomUUID()}`;
  await lockThings(tx, [{ kind: KIND, id }]); // nobody else knows it yet, so this cannot wait
  await create(tx, storeOf(deps.stores, KIND), {
    id,
    ...doneBy(caller),
    row: {
      machine_id: machine.id,
      request_id: input.requestId,
      fingerprint: input.fingerprint,
      type: chosen.type,
      plan_id: plan.planId,
      plan: { ...plan, steps: plan.steps.map((step) => ({ ...step })) },
      params: input.params,
      job_id: `job-${randomUUID()}`,
      initiator: actorOf(caller),
      facts: { scripts },
    },
  });
  return id;
}

async function checkMoment(tx: Transaction, machine: Machine): Promise<void> {
  if (machine.state.name === "RETIRED") {
    throw new AppError("failed_precondition", `machine ${machine.id} is RETIRED: nothing can be done with it`);
  }
  const [active] = await listRuns(tx, { machineId: machine.id, activeOnly: true });
  if (active) {
    throw new AppError(
      "failed_precondition",
      `machine ${machine.id} has an active run, ${active.id}: wait for it or cancel it`,
      {
        next: `millwright run show ${active.id}`,
      },
    );
  }
}

function checkCapabilities(deps: RunDeps, machine: Machine, plan: Plan): void {
  const can = deps.capabilitiesOf(machine.spec.provider);
  for (const step of plan.steps) {
    const kind = deps.steps.get(step.kind);
    const missing = kind
      ? capabilitiesFor(kind, step.payload).filter((capability) => !can.has(capability))
      : [step.kind];
    if (missing.length > 0) {
      throw new AppError(
        "unsupported",
        `step ${step.name} needs ${missing.join(", ")}, which provider ${machine.spec.provider} cannot do: choose another plan`,
      );
    }
  }
}

export async function getRun(deps: ServiceDeps, id: string): Promise<Run> {
  const [run] = await listRuns(deps.db, { ids: [id] });
  if (!run) throw new AppError("not_found", `run ${id.slice(0, 80)} does not exist`, { next: "millwright run list" });
  return run;
}

const FIELDS: FilterFields = {
  run_id: "text",
  machine_id: "text",
  phase: RUN_PHASES,
  type: "text",
  plan_id: "text",
  request_id: "text",
  job_id: "text",
};
const COLUMNS = {
  run_id: "t.id",
  machine_id: "t.machine_id",
  phase: "t.state",
  type: "t.type",
  plan_id: "t.plan_id",
  request_id: "t.request_id",
  job_id: "t.job_id",
};

const MOST_RUNS = 1_000;

/** Newest first. */
export async function pageRuns(
  deps: ServiceDeps,
  request: { readonly filter: string; readonly pageSize: number; readonly pageToken: string },
): Promise<Page<Run>> {
  const query = { filter: request.filter };
  const size = request.pageSize === 0 ? MOST_RUNS : checkPageSize(request.pageSize);
  const [createdAt, id] = parsePageToken(request.pageToken, query, 2) ?? [];
  const runs = await listRuns(deps.db, {
    where: conditionOf(request.filter),
    ...(createdAt !== undefined && id !== undefined && { before: { createdAt: new Date(createdAt), id } }),
    limit: size + 1,
  });
  return cutPage(runs, size, query, (run) => [run.createdAt.toISOString(), run.id]);
}

function conditionOf(filter: string): { sql: string; values: unknown[] } {
  const values: unknown[] = [];
  return { sql: filterSql(parseFilter(filter, FIELDS), COLUMNS, values), values };
}

/** Ends an active run in bounded time; asking again is harmless. */
export async function cancelRun(deps: ServiceDeps, caller: Caller, id: string): Promise<Run> {
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: KIND, id }]);
    const [run] = await listRuns(tx, { ids: [id] });
    if (!run) throw new AppError("not_found", `run ${id.slice(0, 80)} does not exist`);
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
      set: { cancel_requested_at: new Date() },
    });
    await work.wake(tx, [{ kind: KIND, id }]);
    await announce(tx);
  });
  return getRun(deps, id);
}

export interface RunEvent {
  readonly at: Date;
  readonly run: Run;
  readonly message: string;
  /** That of the snapshots at the beginning is where they were taken. */
  readonly cursor: string;
}

/** Without a cursor: one snapshot of each matching active run, then every change; with one: what came after it. */
export async function* watchRuns(
  deps: ServiceDeps,
  events: EventSource,
  query: { readonly filter: string; readonly cursor: string },
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const where = conditionOf(query.filter);
  let needsSnapshots = query.cursor === "";
  const from = needsSnapshots ? ("now" as const) : { cursor: query.cursor };
  for await (const item of events.follow(from, { kinds: [KIND] }, signal)) {
    if (item.type === "bookmark") {
      // The first one says where "now" is; later ones only say that nothing happened.
      if (needsSnapshots) yield* snapshots(deps, where, item.cursor);
      needsSnapshots = false;
      continue;
    }
    const [run] = await listRuns(deps.db, { where, ids: [item.row.id] });
    if (run) yield { at: item.row.at, run, message: item.row.reason ?? item.row.type, cursor: item.row.cursor };
  }
}

async function* snapshots(
  deps: ServiceDeps,
  where: { sql: string; values: unknown[] },
  cursor: string,
): AsyncGenerator<RunEvent> {
  for (const run of await listRuns(deps.db, { where, activeOnly: true })) {
    yield { at: new Date(), run, message: "snapshot", cursor };
  }
}

const LOG_PAGE = 500;

/** From the first chunk, or after the one named; ends when the run has ended and all was sent. */
export async function* streamRunLogs(
  deps: ServiceDeps,
  events: EventSource,
  query: { readonly runId: string; readonly after: number; readonly follow: boolean },
  signal: AbortSignal,
): AsyncGenerator<LogRow> {
  await getRun(deps, query.runId);
  let after = query.after;
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
