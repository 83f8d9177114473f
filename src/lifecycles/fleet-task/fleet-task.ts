import type { Json, JsonObject, Thing } from "../../kernel/lifecycle.ts";

/** What agents are asked to do. An agent refuses every other word, and does nothing. */
export const FLEET_TASK_TYPES = [
  "node.drain",
  "node.cleanup_storage",
  "node.scrub_gpu",
  "node.validate_clean",
  "node.uninstall",
  "diag.health_probe",
] as const;
export type FleetTaskType = (typeof FLEET_TASK_TYPES)[number];

export const isFleetTaskType = (word: unknown): word is FleetTaskType => FLEET_TASK_TYPES.some((type) => type === word);

export interface FleetTaskFacts {
  /** The run whose step waits for the result; null: nobody does. */
  readonly run: string | null;
  /** When an agent took it: a timestamp, as all times here. */
  readonly dispatchedAt: string | null;
  /** Until when the agent that took it is waited for. */
  readonly leaseUntil: string | null;
  /** What the agent called its claim: asked for once more, the same claim is given the same task. */
  readonly claim: string | null;
  readonly finishedAt: string | null;
  /** What the agent said in the end, for people. */
  readonly message: string;
  /** What it said for programs; null before the end. */
  readonly result: JsonObject | null;
}

/** One piece of work for the agent of one node. */
export interface FleetTask extends Thing {
  readonly nodeId: string;
  readonly taskType: FleetTaskType;
  readonly params: JsonObject;
  /** Given up when no agent has taken it by then. */
  readonly expiresAt: Date;
  readonly createdAt: Date;
  readonly facts: FleetTaskFacts;
  readonly state: { readonly name: string; readonly [carried: string]: Json | undefined };
}

export const LIVE_TASK_STATES = ["queued", "dispatched"] as const;

/**
 * Whether the task is still going to come to an end of its own: a fresh one that waits, or one whose agent is still waited for. A task
 * past its time is none, even before the engine has said so.
 */
export function isLive(
  { state, expiresAt, facts }: Pick<FleetTask, "state" | "expiresAt" | "facts">,
  now: Date,
): boolean {
  if (state.name === "queued") return expiresAt > now;
  return state.name === "dispatched" && facts.leaseUntil !== null && Date.parse(facts.leaseUntil) > now.getTime();
}
