import {
  caused,
  defineLifecycle,
  type Happening,
  type JsonObject,
  on,
  reported,
  STAY,
  type StateOf,
} from "../../kernel/lifecycle.ts";
import { hours, minutes } from "../../kernel/time/duration.ts";
import type { FleetTask } from "./fleet-task.ts";

const claimed = (_: FleetTask, { data = {} }: Happening): JsonObject => ({
  dispatchedAt: data.at ?? null,
  leaseUntil: data.leaseUntil ?? null,
  claim: data.claim ?? null,
});
const renewed = (_: FleetTask, { data = {} }: Happening): JsonObject => ({ leaseUntil: data.leaseUntil ?? null });
const answered = (_: FleetTask, { message = "", data = {} }: Happening): JsonObject => ({
  finishedAt: data.at ?? null,
  result: data.result ?? {},
  message,
});
const ended = (_: FleetTask, { message = "", data = {} }: Happening): JsonObject => ({
  finishedAt: data.at ?? null,
  message,
});

/**
 * A task is never begun twice by itself: where the agent that took it falls silent, nobody knows how far it came. It ends as expired, and
 * whoever needs the work makes another task.
 */
export const fleetTaskLifecycle = defineLifecycle<FleetTask>()({
  kind: "fleet_task",
  initial: "queued",
  // It moves on with every renewal; the claim is between the agent and us.
  quietFacts: ["leaseUntil", "claim"],

  // biome-ignore format: a table is read by its columns
  states: {
    queued:     { sla: minutes(30), doc: "Waits for the agent of its node." },
    dispatched: { sla: hours(4),    doc: "The agent has taken it, and is waited for as long as it renews its lease." },
    completed:  { terminal: true,   doc: "The agent has done it." },
    failed:     { terminal: true, trouble: true, doc: "The agent says that it could not be done." },
    expired:    { terminal: true, trouble: true, doc: "No agent took it in time, or the agent that took it fell silent." },
    cancelled:  { terminal: true,   doc: "Nobody needs it any more; no agent had taken it." },
  },

  // biome-ignore format: a table is read by its columns
  transitions: [
    ["queued",     reported("claimed"),    "dispatched", { sets: claimed }],
    ["queued",     on("ttl_elapsed"),      "expired",    { sets: ended }],
    ["queued",     caused("not_needed"),   "cancelled",  { sets: ended }],
    ["dispatched", reported("renewed"),    STAY,         { sets: renewed }],
    ["dispatched", reported("completed"),  "completed",  { sets: answered }],
    ["dispatched", reported("failed"),     "failed",     { sets: answered }],
    ["dispatched", on("lease_elapsed"),    "expired",    { sets: ended }],
  ],
});

export const FLEET_TASK_STATES = Object.keys(fleetTaskLifecycle.states) as readonly StateOf<
  typeof fleetTaskLifecycle
>[];
