import { wake } from "../../kernel/effects.ts";
import { AppError, StepFailure } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { namedList } from "../../kernel/named-list.ts";
import { hours } from "../../kernel/time/duration.ts";
import type { Batch } from "../../lifecycles/batch/batch.ts";
import { batchLifecycle } from "../../lifecycles/batch/lifecycle.ts";
import { describeSum, type Sum, sumUp } from "../children/sum.ts";
import { runLifecycle } from "../model/lifecycle.ts";
import { type ActingContext, defineStepOn, type On, type ProbeAnswer } from "../model/step.ts";

/** `over`: this run was canceled or has ended meanwhile, and starts no others. */
type StartAnswer = "started" | "over" | { readonly refused: string };
/** Starts a run on a machine as any caller does, as a part of this one. Asked for twice, it starts one. */
export type StartOnMachine = (machineId: string) => Promise<StartAnswer>;

/** What steps on batches work with, beside what all steps do. */
export interface OnBatch extends On<Batch> {
  readonly startOn: StartOnMachine;
}

type Payload = {
  /** How many runs are active at a time. */
  readonly max_parallel: number;
  /** After so many machines without success no further run is started; 0: never. */
  readonly stop_after: number;
  readonly type: string;
  readonly plan_id: string;
  readonly params: Readonly<Record<string, string>>;
};
/** Machines on which no run could be started, and why. */
type Receipt = { readonly refused: Readonly<Record<string, string>> };
type Acting = ActingContext<Payload, JsonObject, never, never, Receipt, OnBatch>;

/**
 * Starts a run on each machine of the batch, some at a time, and awaits them. A run is started by a request whose id follows from this run
 * and the machine, so that no crash and no second replica starts it twice.
 */
export const batchRuns = defineStepOn<OnBatch>()({
  kind: "batch",
  needs: [],
  parse: parseBatchRuns,
  // For all of them together; one machine after the other may take days.
  defaults: { timeout: hours(24 * 30), maxRetries: 0 },
  actsByEffectsOnly: true,
  showsOfReceipt: ["refused"],
  before: async () => ({}),
  act: (context: Acting) => startNext(context),
  carryOn: (context: Acting) => startNext(context),
  async probe(context: Acting): Promise<ProbeAnswer> {
    const { sum, toStart, failures } = standOf(context);
    const message = describe(context);
    const { active } = sum;
    if (active.length + toStart.length === 0) {
      if (failures > 0) throw new StepFailure("children_failed", message);
      return { state: "done", message };
    }
    if (context.children.length === 0 && context.receipt === null) return { state: "not_done", message };
    const hasRoom = active.length < context.payload.max_parallel && toStart.length > 0;
    return { state: hasRoom ? "halfway" : "in_progress", message };
  },
});

const machineKey = (id: string) => ({ kind: "machine", id });

interface Stand {
  readonly sum: Sum;
  /** Machines on which a run is still to be started; none once enough of them failed. */
  readonly toStart: readonly string[];
  readonly failures: number;
}

function standOf({ target, children, receipt, payload }: Acting): Stand {
  const refused = receipt?.refused ?? {};
  const sum = sumUp(target.machines.filter((id) => !Object.hasOwn(refused, id)).map(machineKey), children);
  const failures = sum.failed.length + sum.canceled.length + Object.keys(refused).length;
  const isStopped = payload.stop_after > 0 && failures >= payload.stop_after;
  return { sum, failures, toStart: isStopped ? [] : sum.unstarted.map(({ id }) => id) };
}

/** A pass is short, so that a cancel and a stop are soon obeyed: the next one starts the rest. */
const MOST_IN_A_PASS = 10;

/** One after the other: a machine that is refused counts as failed, and may be the one after which no other is to be started. */
async function startNext(context: Acting) {
  const { payload, startOn, log, target, call, runId } = context;
  const refused: Record<string, string> = { ...context.receipt?.refused };
  const { sum, toStart, failures } = standOf(context);
  const before = Object.keys(refused).length;
  let free = payload.max_parallel - sum.active.length;
  for (const machineId of toStart.slice(0, MOST_IN_A_PASS)) {
    if (call.signal.aborted) break;
    const failed = failures + Object.keys(refused).length - before;
    if (free <= 0 || (payload.stop_after > 0 && failed >= payload.stop_after)) break;
    const answer = await startOn(machineId);
    if (answer === "over") break;
    if (answer === "started") free -= 1;
    else refused[machineId] = answer.refused;
    log(`[batch] ${machineId}: ${answer === "started" ? answer : `refused: ${answer.refused}`}\n`);
  }
  // The runs were written beside this one: with an effect the next pass reads them. Who has more to start is not kept waiting.
  const next = toStart.length > MOST_IN_A_PASS && free > 0 ? [wake(runLifecycle, runId)] : [];
  return { receipt: { refused }, effects: [wake(batchLifecycle, target.id), ...next] };
}

const MOST_NAMED = 5;

function describe(context: Acting): string {
  const { sum, toStart } = standOf(context);
  const refused = Object.entries(context.receipt?.refused ?? {});
  const named = refused.map(([id, why]) => `${id} (${why})`);
  const isStopped = toStart.length < sum.unstarted.length;
  return [
    describeSum(sum),
    ...(refused.length > 0 ? [`refused: ${namedList(named, MOST_NAMED)}`] : []),
    ...(isStopped ? [`stopped after ${context.payload.stop_after} without success`] : []),
  ].join("; ");
}

function parseBatchRuns(payload: JsonObject, field: string): Payload {
  const { max_parallel, stop_after, type, plan_id, params } = payload;
  const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
  if (!isCount(max_parallel) || max_parallel < 1 || !isCount(stop_after))
    throw new AppError("invalid_argument", `${field}: max_parallel and stop_after must be whole numbers`, { field });
  return {
    max_parallel,
    stop_after,
    type: typeof type === "string" ? type : "",
    plan_id: typeof plan_id === "string" ? plan_id : "",
    params: (params ?? {}) as Readonly<Record<string, string>>,
  };
}
