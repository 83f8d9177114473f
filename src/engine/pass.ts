import type { CallContext } from "../capabilities/call.ts";
import type { Cause } from "../kernel/causes.ts";
import { decide, fail, follow, isPastDeadline, type Move } from "../kernel/decide.ts";
import type { Effect } from "../kernel/effects.ts";
import { causeOf, messageOf, StepFailure } from "../kernel/errors.ts";
import {
  type Json,
  type JsonObject,
  type Lifecycle,
  type StoredOutcome,
  sameJson,
  type Thing,
} from "../kernel/lifecycle.ts";
import type { FollowUp, Outcome } from "../kernel/outcome.ts";
import type { Clock } from "../kernel/time/clock.ts";
import { type Duration, describeDuration, milliseconds, minutes } from "../kernel/time/duration.ts";
import { pauseBefore, retrying } from "../kernel/time/retry.ts";
import { afterChange, type Change } from "../store/lifecycle/commit/unit.ts";
import type { ThingStore } from "../store/lifecycle/things.ts";
import { continueTrace, withSpan } from "../telemetry/tracing.ts";
import { runBounded } from "./lease/bounded-handler.ts";

/** What the engine knows of a kind of thing besides its store: who handles which state. */
export type StateHandler = (thing: Thing, frame: { readonly call: CallContext }) => Promise<Outcome>;
export type HandlerOf = (state: string) => StateHandler | undefined;

/** What one pass led to, before it is written. */
export interface PassResult {
  readonly move?: Move;
  /** Further rows of the thing. Each is decided on the thing as the previous row leaves it. */
  readonly further?: readonly Change[];
  readonly facts?: JsonObject;
  readonly outcome: StoredOutcome | null;
  readonly effects: readonly Effect[];
  /** When the next pass is due if the thing does not move; null: only when woken. */
  readonly after: Duration | null;
  readonly failures: number;
  readonly error: string | null;
  /** Of the error. */
  readonly cause: Cause | null;
  /** A plain error from a handler is a bug, and is logged as one. */
  readonly bug?: unknown;
}

export interface PassInput {
  readonly lifecycle: Lifecycle<Thing>;
  /** Of the thing's store. */
  readonly factsWith?: ThingStore["factsWith"];
  readonly handlerOf: HandlerOf;
  readonly thing: Thing;
  /** Passes that failed in a row before this one. */
  readonly failures: number;
  readonly clock: Clock;
  readonly call: CallContext;
}

/** Nothing more is known than that the time is over. */
const LATE: Cause = { code: "not_done_in_time" };
const INTERVENTION_RECHECK = minutes(5);
/** A device may ask to be left alone, but not for years. */
const LONGEST_ASKED_PAUSE = minutes(15);

/** Decides and handles once: the controller's own rows first, else the state's handler. Writes nothing. */
export async function makePass(input: PassInput): Promise<PassResult> {
  const { lifecycle, thing } = input;
  try {
    const decision = decide(lifecycle, thing);
    if (decision.kind === "move") return moving(decision.move);
    const handler = input.handlerOf(thing.state.name);
    if (!handler) return { outcome: null, effects: [], after: null, failures: 0, error: null, cause: null };
    const name = `${lifecycle.kind} ${thing.state.name}`;
    const work = () =>
      withSpan(name, { "millwright.id": thing.id }, () => runBounded(input.call, (call) => handler(thing, { call })));
    return resultOf(input, await continueTrace(traceparentOf(thing), work));
  } catch (error) {
    return resultOfFailure(input, error);
  }
}

/** The trace of the request that the state carries, if it carries one. */
function traceparentOf({ state: { request } }: Thing): string | undefined {
  const carried =
    typeof request === "object" && request !== null && "traceparent" in request ? request.traceparent : undefined;
  return typeof carried === "string" ? carried : undefined;
}

function resultOf(input: PassInput, outcome: Outcome): PassResult {
  const { lifecycle, thing, clock } = input;
  const alongside = { facts: changedFacts(thing, outcome.facts ?? {}), effects: outcome.effects ?? [] };
  switch (outcome.type) {
    case "happened": {
      const { followedBy = [] } = outcome;
      const move = reported(lifecycle, thing, outcome, thing.state.name);
      const further = followOn(input, { thing, move, facts: alongside.facts }, followedBy);
      return { ...moving(move, alongside), ...(further.length > 0 && { further }) };
    }
    case "waiting": {
      // A command that fails shows as a wait on every other pass: the cause must name what failed, whichever pass is the last.
      const failing = thing.outcome?.type === "failing" ? thing.outcome : undefined;
      const before = failing === undefined ? "" : `; before that: ${failing.reason}`;
      const cause = outcome.cause ?? failing?.cause ?? LATE;
      const late =
        isPastDeadline(lifecycle, thing, clock.now()) &&
        fail(lifecycle, thing, { message: lateMessage(input, outcome.reason + before), cause });
      if (late) return moving(late, alongside);
      return {
        ...alongside,
        outcome: { type: "waiting", reason: outcome.reason, ...(outcome.cause && { cause: outcome.cause }) },
        after: byDeadline(input, outcome.after),
        failures: 0,
        error: null,
        cause: null,
      };
    }
    case "nothing":
      return { ...alongside, outcome: null, after: outcome.after, failures: 0, error: null, cause: null };
  }
}

function reported(
  lifecycle: Lifecycle<Thing>,
  thing: Thing,
  { event, message, cause, data }: FollowUp,
  handler: string,
): Move {
  const move = follow(lifecycle, thing, { owner: "handler", name: event, message, cause, data });
  if (move) return move;
  const where = handler === thing.state.name ? "" : ` in ${thing.state.name}`;
  throw new Error(`the handler of ${handler} reported ${event}, which the table does not know${where}`);
}

function followOn({ lifecycle, factsWith, thing }: PassInput, first: Change, events: readonly FollowUp[]): Change[] {
  const changes = [first];
  for (const event of events) {
    const now = afterChange({ factsWith }, changes.at(-1) as Change);
    changes.push({ thing: now, move: reported(lifecycle, now, event, thing.state.name) });
  }
  return changes.slice(1);
}

function resultOfFailure(input: PassInput, error: unknown): PassResult {
  const { lifecycle, thing, clock } = input;
  const failure = error instanceof StepFailure ? error : undefined;
  const reason = failure ? failure.message : `unexpected error: ${messageOf(error)}`;
  const cause = causeOf(error);
  const bug = failure ? {} : { bug: error };
  const failures = input.failures + 1;
  if (failure?.disposition === "intervene") {
    return {
      outcome: { type: "needs_intervention", reason, cause },
      effects: [],
      after: INTERVENTION_RECHECK,
      failures,
      error: reason,
      cause,
      ...bug,
    };
  }
  const final = failure?.disposition === "fail";
  const late = isPastDeadline(lifecycle, thing, clock.now());
  const move =
    final || late ? fail(lifecycle, thing, { message: final ? reason : lateMessage(input, reason), cause }) : undefined;
  if (move) return { ...moving(move), ...bug };
  const pause = pauseBefore(failures, retrying);
  const asked = Math.min(failure?.retryAfterMs ?? 0, LONGEST_ASKED_PAUSE);
  const after = byDeadline(input, milliseconds(Math.max(pause, asked)));
  return { outcome: { type: "failing", reason, cause }, effects: [], after, failures, error: reason, cause, ...bug };
}

/** Not after the deadline: it must end the waiting also when a device asks for a long pause. */
function byDeadline({ lifecycle, thing, clock }: PassInput, after: Duration): Duration {
  const deadline = lifecycle.states[thing.state.name]?.deadline;
  if (deadline === undefined) return after;
  const left = deadline - (clock.now().getTime() - thing.stateSince.getTime());
  return left > 0 ? milliseconds(Math.min(after, left + 1)) : after;
}

const moving = (move: Move, alongside: { facts?: JsonObject; effects?: readonly Effect[] } = {}): PassResult => ({
  move,
  outcome: null,
  effects: [],
  ...alongside,
  after: null,
  failures: 0,
  error: null,
  cause: null,
});

function lateMessage({ lifecycle, thing }: PassInput, reason: string): string {
  const deadline = lifecycle.states[thing.state.name]?.deadline;
  return `not done within ${describeDuration(deadline ?? milliseconds(0))}: ${reason}`;
}

/** Only what differs from what is known: an unchanged reading costs no write and no event. */
export function changedFacts(thing: Thing, patch: JsonObject): JsonObject {
  const known = thing.facts as { readonly [name: string]: Json | undefined };
  return Object.fromEntries(Object.entries(patch).filter(([name, value]) => !sameJson(known[name], value)));
}
