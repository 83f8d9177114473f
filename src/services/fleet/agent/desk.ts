import { createBatcher } from "../../../kernel/batcher.ts";
import { AppError } from "../../../kernel/errors.ts";
import type { Log } from "../../../kernel/log.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import type { Duration } from "../../../kernel/time/duration.ts";
import type { FleetTask } from "../../../lifecycles/fleet-task/fleet-task.ts";
import { noteHeartbeats, noteUsed, type Sign } from "../../../store/fleet/agents.ts";
import { nodesWithQueuedTasks } from "../../../store/fleet/tasks.ts";
import type { EventSource } from "../../../store/lifecycle/event-source.ts";
import type { Caller } from "../../call/caller.ts";
import type { ServiceDeps } from "../../call/deps.ts";
import { AGENT_CALLS, Budget, REFUSED_ENROLMENTS } from "./budgets.ts";
import { type Enrolling, enrolAgent } from "./enrol.ts";
import { createTaskSigner, type SignedTask } from "./signing.ts";
import { requiringAgent } from "./standing.ts";
import { answerTask, claimTask, renewTask, type TaskAnswer } from "./tasks.ts";
import { Waiters } from "./waiters.ts";
import { wakeJobsOf } from "./wake.ts";

export interface AgentRules {
  /** How long an agent that took a task is waited for, unless it renews. */
  readonly taskLease: Duration;
  /** The longest that a call for a task stays open. */
  readonly longestWait: Duration;
}

export interface Enrolled {
  readonly bearer: string;
  readonly publicKey: string;
  readonly rules: AgentRules;
}

/** Where the agents of fleet nodes call. Every call but the enrolment is by the bearer token of that node alone. */
export interface AgentDesk {
  enrol(request: Enrolling): Promise<Enrolled>;
  /** One task, as soon as there is one; null when none has come in time. Also a sign of life. */
  wait(
    caller: Caller,
    nodeId: string,
    options: { readonly claim: string | null; readonly waitFor: Duration; readonly signal: AbortSignal },
  ): Promise<SignedTask | null>;
  renew(caller: Caller, nodeId: string, taskId: string): Promise<Date>;
  answer(caller: Caller, nodeId: string, taskId: string, answer: TaskAnswer): Promise<void>;
  heartbeat(caller: Caller, sign: Sign): Promise<void>;
  /** Answers whoever waits. */
  close(): void;
}

/** Signs of life that come in while others are written are written together. */
const SIGNS = { most: 500, atOnce: 2 } as const;

export function openAgentDesk(
  deps: ServiceDeps,
  wiring: {
    readonly rules: AgentRules;
    readonly events: EventSource;
    readonly clock: Clock;
    readonly log: Log;
  },
): AgentDesk {
  const { rules, events, clock, log } = wiring;
  const { db } = deps;
  const signer = createTaskSigner(deps);
  const refusals = new Budget(REFUSED_ENROLMENTS, clock);
  const calls = new Budget(AGENT_CALLS, clock);
  const standingOf = requiringAgent(db);
  const waiters = new Waiters({ events, findNodes: () => nodesWithQueuedTasks(db), log });
  const signs = createBatcher<Sign, boolean>({ ...SIGNS, run: (some) => noteTogether(deps, some) });

  /** What each call but the enrolment begins with: whose it is, whether it is one too many, and that the agent is alive. */
  async function admit(caller: Caller, sign: Sign): Promise<void> {
    const { nodeId } = sign;
    const { isUsed, tokenId } = await standingOf(caller, nodeId);
    calls.spend(nodeId);
    if (!isUsed) await noteUsed(db, nodeId, tokenId);
    // A node that says for the first time that it is well may be all that its job still waits for.
    if (await signs.submit(sign)) await wakeJobsOf(db, [nodeId]);
  }

  const signed = (task: FleetTask): Promise<SignedTask> =>
    signer.sign(task, new Date(task.facts.leaseUntil ?? task.expiresAt));

  return {
    async enrol(request) {
      const from = request.address ?? "";
      refusals.check(from);
      const publicKey = await signer.publicKey();
      try {
        return { ...(await enrolAgent(deps, request)), publicKey, rules };
      } catch (error) {
        if (!(error instanceof AppError) || error.kind !== "unauthenticated") throw error;
        refusals.spend(from);
        log.warn({ node: request.nodeId, address: request.address }, "an enrolment was refused");
        throw error;
      }
    },

    async wait(caller, nodeId, { claim, waitFor, signal }) {
      await admit(caller, { nodeId });
      const call = { nodeId, address: caller.address };
      const timeout = AbortSignal.timeout(Math.min(waitFor, rules.longestWait));
      const waiter = waiters.enter(nodeId, AbortSignal.any([signal, timeout]));
      try {
        const { taskLease: lease } = rules;
        const first = await claimTask(deps, call, { claim, lease });
        if (first) return await signed(first);
        await waiter.roused;
        // Nobody is there any more to be given one.
        if (signal.aborted || waiter.isReplaced()) return null;
        const second = await claimTask(deps, call, { claim, lease });
        return second && (await signed(second));
      } finally {
        waiter.leave();
      }
    },

    async renew(caller, nodeId, taskId) {
      await admit(caller, { nodeId });
      return renewTask(deps, { nodeId, address: caller.address }, { taskId, lease: rules.taskLease });
    },

    async answer(caller, nodeId, taskId, answer) {
      await admit(caller, { nodeId });
      return answerTask(deps, { nodeId, address: caller.address }, { taskId, ...answer });
    },

    heartbeat: (caller, sign) => admit(caller, sign),
    close: () => waiters.close(),
  };
}

/** Of each node the last sign that says something. Answers for each whether its node is now seen to be well, and was not before. */
async function noteTogether({ db }: ServiceDeps, signs: readonly Sign[]): Promise<readonly boolean[]> {
  const byNode = new Map<string, Sign>();
  for (const sign of signs) byNode.set(sign.nodeId, { ...byNode.get(sign.nodeId), ...sign });
  const recovered = await noteHeartbeats(db, [...byNode.values()]);
  return signs.map(({ nodeId }) => recovered.has(nodeId));
}
