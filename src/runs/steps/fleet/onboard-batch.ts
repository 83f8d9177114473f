import { wake } from "../../../kernel/effects.ts";
import { AppError, StepFailure } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/lifecycle.ts";
import { namedList } from "../../../kernel/named-list.ts";
import { hours } from "../../../kernel/time/duration.ts";
import type { Batch } from "../../../lifecycles/batch/batch.ts";
import { batchLifecycle } from "../../../lifecycles/batch/lifecycle.ts";
import { runLifecycle } from "../../model/lifecycle.ts";
import type { JobState } from "../../model/run.ts";
import { type ActingContext, defineStepOn, type On, type ProbeAnswer } from "../../model/step.ts";

/** One node of a batch. A type and no interface, so that it is JSON to the compiler. */
export type BatchNode = {
  readonly site: string;
  readonly profile: string;
  readonly sku: string;
  readonly hostname: string;
  readonly ipmi_ip: string;
  readonly mode: string;
};

type OnboardAnswer = { readonly id: string } | { readonly refused: string };

/** What the step that onboards a batch works with, beside what all steps do. */
export interface OnNodeBatch extends On<Batch> {
  /** Onboards a node as any caller does. Asked for twice under the same key, it is one. */
  readonly onboard: (node: BatchNode, key: string) => Promise<OnboardAnswer>;
  /** The states of the onboardings of these nodes; those that have none are left out. */
  readonly jobsOf: (nodeIds: readonly string[]) => Promise<ReadonlyMap<string, JobState>>;
}

type Payload = {
  readonly nodes: readonly BatchNode[];
  /** By `site/profile`: how many of its nodes are onboarded at a time. As the profiles had it when the batch began. */
  readonly limits: Readonly<Record<string, number>>;
};
/** By the place of each node in the batch: its id, or why it was refused. */
type Receipt = {
  readonly nodes: Readonly<Record<string, string>>;
  readonly refused: Readonly<Record<string, string>>;
};
type Acting = ActingContext<Payload, JsonObject, never, never, Receipt, OnNodeBatch>;

/**
 * Onboards the nodes of a batch, of each profile some at a time, and awaits them. Each is onboarded by a request whose id follows from this
 * run and the node's place, so that no crash and no second replica onboards one twice. Their jobs are their own: they are acted on like
 * any other.
 */
export const onboardBatch = defineStepOn<OnNodeBatch>()({
  kind: "onboard_batch",
  needs: [],
  parse: parsePayload,
  // For all of them together.
  defaults: { timeout: hours(24 * 30), maxRetries: 0 },
  actsByEffectsOnly: true,
  showsOfReceipt: ["nodes", "refused"],
  before: async () => ({}),
  act: (context: Acting) => onboardNext(context),
  carryOn: (context: Acting) => onboardNext(context),
  async probe(context: Acting): Promise<ProbeAnswer> {
    const stand = await standOf(context);
    const message = describe(context, stand);
    if (stand.active.length + stand.waiting.length === 0) {
      if (stand.failed.length + stand.refused.length > 0) throw new StepFailure("children_failed", message);
      return { state: "done", message };
    }
    if (context.receipt === null) return { state: "not_done", message };
    return { state: nextOf(context, stand).length > 0 ? "halfway" : "in_progress", message };
  },
});

/** The places of the nodes in the batch. */
interface Stand {
  readonly waiting: readonly number[];
  readonly active: readonly number[];
  readonly completed: readonly number[];
  readonly failed: readonly number[];
  readonly refused: readonly number[];
}

const DONE: ReadonlySet<JobState | undefined> = new Set(["completed", "reconciled"]);
const ACTIVE: ReadonlySet<JobState | undefined> = new Set(["pending", "running", "compensating"]);

async function standOf({ payload, receipt, jobsOf }: Acting): Promise<Stand> {
  const { nodes: ids = {}, refused = {} } = receipt ?? {};
  const jobs = await jobsOf(Object.values(ids));
  const places = payload.nodes.map((_, place) => place);
  const stateAt = (place: number) => jobs.get(ids[place] ?? "");
  const begun = places.filter((place) => ids[place] !== undefined);
  return {
    waiting: places.filter((place) => ids[place] === undefined && refused[place] === undefined),
    active: begun.filter((place) => ACTIVE.has(stateAt(place))),
    // A manual node has no job until its owner has run the bootstrap command: its part in the batch is done.
    completed: begun.filter((place) => DONE.has(stateAt(place)) || stateAt(place) === undefined),
    failed: begun.filter(
      (place) => stateAt(place) !== undefined && !ACTIVE.has(stateAt(place)) && !DONE.has(stateAt(place)),
    ),
    refused: places.filter((place) => refused[place] !== undefined),
  };
}

const keyOf = ({ site, profile }: BatchNode): string => `${site}/${profile}`;

/** Those that may begin now, within what their profiles allow. */
function nextOf({ payload: { nodes, limits } }: Acting, { waiting, active }: Stand): readonly number[] {
  const keyAt = (place: number): string => keyOf(nodes[place] as BatchNode);
  const free = new Map(
    Object.entries(limits).map(([key, limit]) => [key, limit - active.filter((place) => keyAt(place) === key).length]),
  );
  return waiting.filter((place) => {
    const left = free.get(keyAt(place)) ?? 1;
    free.set(keyAt(place), left - 1);
    return left > 0;
  });
}

/** A pass is short, so that a cancel and a stop are soon obeyed: the next one starts the rest. */
const MOST_IN_A_PASS = 10;

async function onboardNext(context: Acting) {
  const { payload, receipt, onboard, log, call, runId, target } = context;
  const ids: Record<string, string> = { ...receipt?.nodes };
  const refused: Record<string, string> = { ...receipt?.refused };
  const next = nextOf(context, await standOf(context));
  for (const place of next.slice(0, MOST_IN_A_PASS)) {
    if (call.signal.aborted) break;
    const node = payload.nodes[place] as BatchNode;
    const answer = await onboard(node, `${runId} ${place}`);
    if ("id" in answer) ids[place] = answer.id;
    else refused[place] = answer.refused;
    log(`[onboard] ${node.hostname}: ${"id" in answer ? answer.id : `refused: ${answer.refused}`}\n`);
  }
  // The nodes were written beside this run: with an effect the next pass reads them.
  const more = next.length > MOST_IN_A_PASS ? [wake(runLifecycle, runId)] : [];
  return { receipt: { nodes: ids, refused }, effects: [wake(batchLifecycle, target.id), ...more] };
}

const MOST_NAMED = 5;

function describe({ payload, receipt }: Acting, { waiting, active, completed, failed, refused }: Stand): string {
  const named = (places: readonly number[], more: (place: number) => string = () => "") =>
    namedList(
      places.map((place) => `${payload.nodes[place]?.hostname}${more(place)}`),
      MOST_NAMED,
    );
  const why = (place: number): string => ` (${receipt?.refused[place]})`;
  return [
    `${completed.length} of ${payload.nodes.length} onboarded`,
    ...(active.length > 0 ? [`${active.length} under way`] : []),
    ...(waiting.length > 0 ? [`${waiting.length} waiting`] : []),
    ...(failed.length > 0 ? [`failed: ${named(failed)}`] : []),
    ...(refused.length > 0 ? [`refused: ${named(refused, why)}`] : []),
  ].join("; ");
}

const TEXTS = ["site", "profile", "sku", "hostname", "ipmi_ip", "mode"] as const;

function parsePayload(payload: JsonObject, field: string): Payload {
  const { nodes, limits } = payload;
  const isNode = (one: unknown): one is BatchNode =>
    typeof one === "object" && one !== null && TEXTS.every((name) => typeof (one as JsonObject)[name] === "string");
  if (!Array.isArray(nodes) || !nodes.every(isNode) || typeof limits !== "object" || limits === null)
    throw new AppError("invalid_argument", `${field}: nodes and limits are required`, { field });
  return { nodes, limits: limits as Readonly<Record<string, number>> };
}
