import { randomBytes } from "node:crypto";
import type { CauseCode } from "../../../kernel/causes.ts";
import { create, type Effect, move, observe } from "../../../kernel/effects.ts";
import { AppError, StepFailure } from "../../../kernel/errors.ts";
import { isJsonObject, type JsonObject } from "../../../kernel/lifecycle.ts";
import { type Duration, minutes } from "../../../kernel/time/duration.ts";
import type { FleetNode } from "../../../lifecycles/fleet-node/fleet-node.ts";
import { type FleetTask, type FleetTaskType, isLive } from "../../../lifecycles/fleet-task/fleet-task.ts";
import { fleetTaskLifecycle } from "../../../lifecycles/fleet-task/lifecycle.ts";
import { problemOf } from "../../../lifecycles/fleet-task/results.ts";
import { type ActingContext, defineStepOn, type On, type ProbeAnswer } from "../../model/step.ts";
import type { WithAgent } from "./agent-of-node.ts";

export interface AgentTaskOptions<K extends string> {
  /** Of the step. */
  readonly kind: K;
  readonly taskType: FleetTaskType;
  /** Why the step fails where the agent cannot do it, or does not answer. */
  readonly failure: CauseCode;
  /** `done`: where no agent ever enrolled, or the last one was dismissed, there is nothing to do. `fail`: nobody else can do it. */
  readonly withoutAgent: "done" | "fail";
  /** The same for an agent that does not call any more, where the payload does not say it (`silent_is_done`). Absent: it fails. */
  readonly silent?: "done" | "fail";
  /** For one attempt. */
  readonly timeout?: Duration;
}

type Payload = {
  /** What the task is given. */
  readonly params: JsonObject;
  readonly silent_is_done: boolean;
};
/** The task that the visit waits for, or why there is nobody to ask. */
type Evidence = { readonly task: string; readonly adopted: boolean } | { readonly nobody: string };

export type OnNodeWithAgent = On<FleetNode> & WithAgent;
type Before = Pick<
  ActingContext<Payload, Evidence, never, never, JsonObject, OnNodeWithAgent>,
  "agent" | "clock" | "payload"
>;
type Acting = ActingContext<Payload, Evidence, never, never, JsonObject, OnNodeWithAgent>;

/** Attempts after the first one: each with a task of its own, where the one before found no agent in time, or its agent fell silent. */
const RETRIES = 2;

/**
 * A step that has the agent of the node do something. It makes a task, or adopts the live one that the node has of that type already, so that
 * going on after whatever crash or failure never makes a second one. A task that no agent took, or whose agent fell silent, is
 * followed by another one in the next attempt.
 */
export const agentTask = <const K extends string>({
  kind,
  taskType,
  failure,
  withoutAgent,
  silent = "fail",
  timeout = minutes(60),
}: AgentTaskOptions<K>) =>
  defineStepOn<OnNodeWithAgent>()({
    kind,
    needs: [],
    parse: (payload: JsonObject, field: string): Payload => ({
      params: paramsOf(payload, field),
      silent_is_done: payload.silent_is_done === true || silent === "done",
    }),
    defaults: { timeout, maxRetries: RETRIES },
    actsByEffectsOnly: true,

    async before(context: Before): Promise<Evidence> {
      const { agent } = context;
      if (!(await agent.isEnrolled())) {
        if (withoutAgent === "fail") throw failed(failure, "the node has no agent that could do it");
        return { nobody: "the node has no agent to ask" };
      }
      const live = await agent.findLiveTask(taskType);
      if (live) return { task: live.id, adopted: true };
      const silence = await silenceOf(context);
      if (silence !== null && context.payload.silent_is_done) return { nobody: silence };
      return { task: `ft-${randomBytes(10).toString("hex")}`, adopted: false };
    },

    async act({ evidence, payload, agent, clock, runId, target }: Acting) {
      if ("nobody" in evidence) return undefined;
      const { task, adopted } = evidence;
      // Whoever has made it is over: from now on this run is woken by it.
      if (adopted) return { effects: [observe(fleetTaskLifecycle, task, { run: runId })] };
      const expires_at = new Date(clock.now().getTime() + agent.taskTtl).toISOString();
      const row = {
        node_id: target.id,
        task_type: taskType,
        params: payload.params,
        expires_at,
        facts: { run: runId },
      };
      return { effects: [create(fleetTaskLifecycle, task, row)] };
    },

    async probe(context: Acting): Promise<ProbeAnswer> {
      const { evidence, agent, actingAt } = context;
      if ("nobody" in evidence) return { state: "done", message: `nothing to do: ${evidence.nobody}` };
      const task = await agent.findTask(evidence.task);
      if (task === null || (evidence.adopted && (actingAt ?? null) === null)) return "not_done";
      return answerBy(task, context, failure);
    },

    async undo({ evidence }) {
      if ("nobody" in evidence) return undefined;
      return { effects: [notNeeded(evidence.task)] };
    },
  });

const failed = (code: CauseCode, message: string, disposition?: "retry"): StepFailure =>
  StepFailure.of({ code }, message, disposition);

const notNeeded = (task: string): Effect =>
  move(fleetTaskLifecycle, task, "not_needed", { ifPossible: true, message: "nobody waits for it any more" });

async function answerBy(task: FleetTask, context: Acting, failure: CauseCode): Promise<ProbeAnswer> {
  const { id, taskType, state, facts } = task;
  const said = facts.message === "" ? "" : `: ${facts.message}`;
  switch (state.name) {
    case "completed": {
      const problem = problemOf(taskType, facts.result);
      if (problem !== undefined) throw failed(failure, `task ${id} (${taskType}): ${problem}`);
      return { state: "done", message: `task ${id} (${taskType}) is done${said}` };
    }
    case "failed":
      throw failed(failure, `the agent could not do task ${id} (${taskType})${said}`);
    default: {
      const silence = context.payload.silent_is_done ? await silenceOf(context) : null;
      if (silence !== null) return { state: "done", message: `nothing to do: ${silence}`, effects: [notNeeded(id)] };
      if (isLive(task, context.clock.now()))
        return { state: "in_progress", message: `task ${id} (${taskType}) is ${state.name}` };
      throw failed(failure, `task ${id} (${taskType}) has ended without an answer${said}`, "retry");
    }
  }
}

/** Why the agent cannot be asked now; null: it calls. One that has just enrolled has not called yet. */
async function silenceOf({ agent, clock }: Pick<Before, "agent" | "clock">): Promise<string | null> {
  const heard = await agent.lastHeard();
  if (heard === null) return "its agent has never called";
  const forMs = clock.now().getTime() - heard.seenAt.getTime();
  return forMs < agent.silentAfter ? null : `its agent was heard last at ${heard.seenAt.toISOString()}`;
}

function paramsOf({ params = {} }: JsonObject, field: string): JsonObject {
  if (isJsonObject(params)) return params;
  throw new AppError("invalid_argument", `${field}: params must be an object`, { field });
}
