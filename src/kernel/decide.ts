import type { Cause } from "./causes.ts";
import { AppError } from "./errors.ts";
import {
  GONE,
  type Happening,
  isJsonObject,
  type JsonObject,
  type Lifecycle,
  type Owner,
  type Row,
  rowsFrom,
  STAY,
  type StateSpec,
  sameJson,
  type Thing,
} from "./lifecycle.ts";

/** A transition worked out, ready to be written: nothing in it is still to be decided. */
export interface Move {
  readonly from: string;
  /** Equal to `from` for a row that stays. */
  readonly to: string;
  readonly gone: boolean;
  readonly carried: JsonObject;
  readonly facts: JsonObject;
  readonly ends: readonly RequestEnd[];
  /** Fields whose requests end unheard. Which they are is known once the thing is locked. */
  readonly withdraws?: readonly string[];
  /** Fields whose pending requests another one displaces: the one that the new state carries. */
  readonly supersedes?: readonly string[];
  /** Fields whose pending requests have waited too long. */
  readonly expires?: readonly string[];
  /** Fields whose pending requests cannot be carried out. */
  readonly refuses?: readonly string[];
  readonly owner: Owner;
  readonly trigger: string;
  readonly message: string | undefined;
  /** Why, where it is a failure. */
  readonly cause?: Cause;
}

export interface RequestEnd {
  readonly field: string;
  /** The whole request, as the state carried it; its `id` tells it from a newer one. */
  readonly request: JsonObject;
  readonly outcome: "completed" | "failed" | "withdrawn" | "superseded" | "expired";
  readonly message: string | undefined;
}

export type Decision = { readonly kind: "move"; readonly move: Move } | { readonly kind: "handle" };

/** What the controller does with a thing as it is: the first of its own rows whose guard holds, else the state's handler. */
export function decide<T extends Thing>(lifecycle: Lifecycle<T>, thing: T): Decision {
  const row = rowsFrom(lifecycle, stateOf(lifecycle, thing)).find(
    ([, trigger]) => trigger.owner === "controller" && trigger.guard?.(thing),
  );
  return row ? { kind: "move", move: plan(thing, row, {}) } : { kind: "handle" };
}

/** What the table makes of something that happened; undefined when no row of the thing's state knows it. */
export function follow<T extends Thing>(
  lifecycle: Lifecycle<T>,
  thing: T,
  happened: { readonly owner: Exclude<Owner, "controller">; readonly name: string } & Happening,
): Move | undefined {
  const row = rowsFrom(lifecycle, stateOf(lifecycle, thing)).find(
    ([, trigger, , options]) =>
      trigger.owner === happened.owner && trigger.name === happened.name && (options?.provided?.(thing) ?? true),
  );
  return row && plan(thing, row, happened);
}

/** The move that a state's final failure leads to; undefined when the table has none, and the thing stays and retries. */
export function fail<T extends Thing>(lifecycle: Lifecycle<T>, thing: T, failure: Happening): Move | undefined {
  const row = rowsFrom(lifecycle, stateOf(lifecycle, thing)).find(
    ([, trigger, , options]) => trigger.failure && (options?.provided?.(thing) ?? true),
  );
  return row && plan(thing, row, failure);
}

/** Like `follow`, for callers' verbs: a verb that is not possible now is refused with those that are. */
export function followOrRefuse<T extends Thing>(
  lifecycle: Lifecycle<T>,
  thing: T,
  happened: { readonly owner: "caller" | "agent" | "other"; readonly name: string } & Happening,
): Move {
  const move = follow(lifecycle, thing, happened);
  if (move) return move;
  const possible = rowsFrom(lifecycle, stateOf(lifecycle, thing))
    .filter(([, trigger, , options]) => trigger.owner === happened.owner && (options?.provided?.(thing) ?? true))
    .map(([, trigger]) => trigger.name);
  throw new AppError(
    "failed_precondition",
    `${lifecycle.kind} ${thing.id} is ${thing.state.name}: ${happened.name} is not possible` +
      (possible.length > 0 ? `; possible: ${[...new Set(possible)].join(", ")}` : ""),
  );
}

/** Whether the move enters a state again: another one, or the same with something else that it carries. */
export function changesState({ state }: Thing, { to, carried }: Pick<Move, "to" | "carried">): boolean {
  const { name, ...before } = state;
  return name !== to || !sameJson(before as JsonObject, carried);
}

/** True once the thing has been at work in its state for longer than its SLA allows. */
export function isStuck(
  lifecycle: { readonly states: Readonly<Record<string, StateSpec>> },
  thing: Pick<Thing, "state" | "stateSince">,
  now: Date,
): boolean {
  const sla = lifecycle.states[thing.state.name]?.sla;
  return sla !== undefined && now.getTime() - thing.stateSince.getTime() > sla;
}

/** True once waiting and retrying must end along the failure row. */
export function isPastDeadline<T extends Thing>(lifecycle: Lifecycle<T>, thing: T, now: Date): boolean {
  const deadline = lifecycle.states[thing.state.name]?.deadline;
  return deadline !== undefined && now.getTime() - thing.stateSince.getTime() > deadline;
}

function stateOf<T extends Thing>(lifecycle: Lifecycle<T>, thing: T): string {
  if (lifecycle.states[thing.state.name] === undefined) {
    throw new Error(`${lifecycle.kind} ${thing.id} is in state ${thing.state.name}, which its lifecycle does not know`);
  }
  return thing.state.name;
}

function plan<T extends Thing>(thing: T, row: Row<T>, happening: Happening): Move {
  const [, trigger, to, options = {}] = row;
  const { name: from, ...carriedNow } = thing.state;
  const ends = (options.clears ?? []).flatMap(({ field, carried, outcome: declared }): RequestEnd[] => {
    const request = carried(thing);
    if (!isJsonObject(request)) return [];
    const outcome = declared ?? options.clearedAs ?? (trigger.failure ? "failed" : "completed");
    return [{ field, request, outcome, message: happening.message }];
  });
  return {
    from,
    to: to === STAY || to === GONE ? from : to,
    gone: to === GONE,
    carried: options.carries?.(thing, happening) ?? (to === STAY ? (carriedNow as JsonObject) : {}),
    facts: options.sets?.(thing, happening) ?? {},
    ends,
    ...(options.withdraws && { withdraws: options.withdraws }),
    ...(options.supersedes && { supersedes: options.supersedes }),
    ...(options.expires && { expires: options.expires }),
    ...(options.refuses && { refuses: options.refuses }),
    owner: trigger.owner,
    trigger: trigger.name,
    message: happening.message,
    ...(happening.cause && { cause: happening.cause }),
  };
}
