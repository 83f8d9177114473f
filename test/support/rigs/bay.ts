import { move } from "../../../src/kernel/effects.ts";
import { StepFailure } from "../../../src/kernel/errors.ts";
import {
  caused,
  defineLifecycle,
  type JsonObject,
  type Lifecycle,
  on,
  type Thing,
} from "../../../src/kernel/lifecycle.ts";
import { type Handlers, happened, nothingToDo } from "../../../src/kernel/outcome.ts";
import { hours, minutes } from "../../../src/kernel/time/duration.ts";
import { childStep } from "../../../src/runs/children/child-run.ts";
import { defineFanOut } from "../../../src/runs/children/fan-out.ts";
import { collectSteps, defineStepOn, type On } from "../../../src/runs/model/step.ts";
import { startsRun } from "../../../src/runs/targets/new-run.ts";
import type { TargetKind } from "../../../src/runs/targets/target-kind.ts";
import { collectWorkflows, defineWorkflow, goTo, planOfWorkflow, skip } from "../../../src/runs/workflows/workflow.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../../../src/store/lifecycle/state-columns.ts";
import { parseRows, type ThingKey, type ThingStore } from "../../../src/store/lifecycle/things.ts";
import type { Queryable } from "../../../src/store/postgres/database.ts";
import type { OnGadget } from "./steps.ts";

/**
 * Shaped as racks are to be, and there for tests only. A request leads a bay into maintenance: the commit that moves it takes the
 * claims on all its gadgets and starts a run on the bay. The run is a workflow. It has runs on the gadgets, which work under the
 * bay's claims; it goes back a stage when its check finds a gadget at the wrong version; and its flash leaves a receipt.
 */
export interface Bay extends Thing {
  readonly facts: object;
  readonly gadgets: readonly string[];
  readonly maintenanceRequest: JsonObject | null;
}

const itsRequest = { field: "maintenanceRequest", carried: ({ state }: Bay) => state.request } as const;
const carried = ({ maintenanceRequest, gadgets }: Bay): JsonObject => ({ request: maintenanceRequest ?? {}, gadgets });

export const bayLifecycle = defineLifecycle<Bay>()({
  kind: "bay",
  initial: "ready",
  // biome-ignore format: a table is read by its columns
  states: {
    ready:       { rest: true,                  doc: "In use, or waits for its gadgets." },
    maintenance: { sla: hours(1), claims: true, doc: "A run works on it." },
    error:       { rest: true,                  doc: "Its maintenance failed." },
  },
  // biome-ignore format: a table is read by its columns
  transitions: [
    ["ready",       on("maintenance_begun"), "maintenance", { carries: carried }],
    ["error",       on("maintenance_begun"), "maintenance", { carries: carried }],
    ["maintenance", caused("run_succeeded"), "ready",       { clears: [itsRequest] }],
    ["maintenance", caused("run_canceled"),  "ready",       { clears: [itsRequest] }],
    ["maintenance", caused("run_failed"),    "error",       { clears: [{ ...itsRequest, outcome: "failed" }] }],
  ],
});

export const bayKey = (id: string): ThingKey => ({ kind: "bay", id });
const gadgetKey = (id: string): ThingKey => ({ kind: "gadget", id });

export const bayTarget: TargetKind<Bay> = {
  kind: "bay",
  // It is in maintenance already: the commit that made it so started the run.
  whenStarted: () => [],
  whenEnded: ({ target }, { phase, message }) => [
    move(
      bayLifecycle,
      target.id,
      ({ SUCCEEDED: "run_succeeded", FAILED: "run_failed", CANCELED: "run_canceled" } as const)[phase],
      { message },
    ),
  ],
};

interface BayRow extends StateColumns {
  facts: object;
  gadgets: string[];
  maintenance_requested: JsonObject | null;
}

export const bayStore: ThingStore<Bay> = {
  lifecycle: bayLifecycle as unknown as Lifecycle<Bay>,
  table: "bays",
  requests: { maintenanceRequest: { column: "maintenance_requested", lastColumn: "last_maintenance_request" } },
  claims: ({ id, state }) => ({
    targets: [bayKey(id), ...(state.gadgets as readonly string[]).map(gadgetKey)],
    holder: bayKey(id),
  }),
  async load(db, ids) {
    const rows = await db.query<BayRow>(
      `select ${STATE_COLUMNS}, t.gadgets, t.maintenance_requested from bays t where t.id = any($1)`,
      [ids],
    );
    return parseRows(
      rows,
      (row): Bay => ({
        ...parseStateColumns(row),
        id: row.id,
        facts: row.facts,
        gadgets: row.gadgets,
        maintenanceRequest: row.maintenance_requested,
      }),
    );
  },
};

/** The gadgets' firmware is part of their world, not of our database: flashing answers with the name of a job. */
export async function createBayTables(db: Queryable): Promise<void> {
  await db.query(`create table bays (
    id text primary key, gadgets text[] not null, maintenance_requested jsonb, last_maintenance_request jsonb,
    facts jsonb not null default '{}', state text not null, state_data jsonb not null default '{}', state_version bigint not null default 1,
    state_since timestamptz not null default now(), outcome jsonb, version bigint not null default 1, basis bigint not null default 1)`);
  await db.query("create table flash_jobs (job serial primary key, gadget text not null)");
}

export interface FlashWorld {
  flash(gadget: string): Promise<number>;
  jobsOf(gadgets: readonly string[]): Promise<readonly number[]>;
}
export const openFlashWorld = (db: Queryable): FlashWorld => ({
  async flash(gadget) {
    const [row] = await db.query<{ job: number }>("insert into flash_jobs (gadget) values ($1) returning job", [
      gadget,
    ]);
    return row?.job ?? 0;
  },
  async jobsOf(gadgets) {
    const rows = await db.query<{ job: number }>("select job from flash_jobs where gadget = any($1) order by job", [
      gadgets,
    ]);
    return rows.map(({ job }) => job);
  },
});

export interface OnFlashed extends OnGadget {
  readonly flashes: FlashWorld;
}
const anyPayload = (payload: JsonObject): JsonObject => payload;
type Flashed = { readonly jobs: number };

/** Leaves a receipt: the job. Where the receipt was lost with its process, the gadget's own list tells. */
export const flash = defineStepOn<OnFlashed>()({
  kind: "flash",
  needs: [],
  defaults: { timeout: minutes(5), maxRetries: 0 },
  parse: anyPayload,
  before: async ({ target, flashes }): Promise<Flashed> => ({ jobs: (await flashes.jobsOf([target.id])).length }),
  act: async ({ target, flashes }) => ({ receipt: { job: await flashes.flash(target.id), session: "flash-session" } }),
  showsOfReceipt: ["job"],
  async probe({ target, flashes, evidence, receipt }) {
    const jobs = await flashes.jobsOf([target.id]);
    if (receipt !== null)
      return jobs.includes(receipt.job) ? { state: "done", message: `job ${receipt.job}` } : "unknown";
    return jobs.length === evidence.jobs ? "not_done" : { state: "done", message: `job ${jobs.at(-1)}` };
  },
});

export const flashAll = defineFanOut<Bay, JsonObject>({
  kind: "flash_all",
  parse: anyPayload,
  defaults: { timeout: minutes(5) },
  targets: ({ gadgets }) => gadgets.map(gadgetKey),
  stepsOn: () => [childStep(flash, {})],
  atOnce: 2,
});

export interface OnBay extends On<Bay> {
  readonly flashes: FlashWorld;
}
/** Every gadget takes its firmware only at the second flash: real ones have been seen to. */
export const checkBay = defineStepOn<OnBay>()({
  kind: "check_bay",
  needs: [],
  defaults: { timeout: minutes(5), maxRetries: 0 },
  parse: anyPayload,
  before: async () => ({}),
  act: async () => undefined,
  async probe({ target, flashes }) {
    const jobs = await flashes.jobsOf(target.gadgets);
    if (jobs.length >= 2 * target.gadgets.length) return "done";
    throw new StepFailure("install_failed", `${jobs.length} flashes, and each gadget needs two`, {
      disposition: "fail",
    });
  },
});

export const baySteps = collectSteps([flash, flashAll, checkBay]);

export const bayMaintenance = defineWorkflow({
  kind: "bay_maintenance",
  doc: "Flash all gadgets, and again until the check is content",
  stages: [
    { name: "cool_down", step: "check_bay", compensation: "nothing" },
    { name: "flash_all", compensation: { stays: "the firmware that was flashed" }, maxRounds: 3, isSafe: true },
    { name: "check_bay", compensation: "nothing", maxRounds: 3, leadsTo: ["flash_all"], mayEnd: true },
  ],
  next(history, { onwards }) {
    const last = history.at(-1);
    if (last === undefined) return skip("cool_down", "it is cold");
    return last.stage === "check_bay" && last.cause === "install_failed" ? goTo("flash_all") : onwards;
  },
});
export const bayWorkflows = collectWorkflows([bayMaintenance], baySteps);

/** The commit that moves the bay into maintenance takes the claims and starts the run: all of it, or nothing. */
const begin = async (bay: Bay) => {
  const { id, maintenanceRequest } = bay;
  if (maintenanceRequest === null) return nothingToDo(null);
  const run = startsRun(
    { target: bayKey(id), plan: planOfWorkflow(bayMaintenance, baySteps), initiator: `bay ${id}`, holder: bayKey(id) },
    [id, String(maintenanceRequest.id)],
  );
  return happened("maintenance_begun", { effects: [run] });
};
export const bayHandlers: Handlers<typeof bayLifecycle, Bay, object> = { ready: begin, error: begin };
