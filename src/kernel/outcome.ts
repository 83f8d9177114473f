import type { Cause } from "./causes.ts";
import type { Effect } from "./effects.ts";
import type { AnyEventOf, EventOf, JsonObject, Lifecycle, StateOf } from "./lifecycle.ts";
import type { Duration } from "./time/duration.ts";

interface Alongside {
  /** A patch of the thing's own facts: what was read. */
  readonly facts?: JsonObject;
  readonly effects?: readonly Effect[];
}

/** What happened next, in the state that the table led to: one more row of the thing, in the same commit. */
export interface FollowUp<F extends string = string> {
  readonly event: F;
  readonly message?: string;
  readonly cause?: Cause;
  readonly data?: JsonObject;
}

/** What a handler reports. It never names a state: the table says where an event leads. */
export type Outcome<E extends string = string, F extends string = string extends E ? string : never> =
  | ({
      readonly type: "happened";
      readonly event: E;
      readonly message?: string;
      readonly cause?: Cause;
      /** What the functions of the table's row read. */
      readonly data?: JsonObject;
      readonly followedBy?: readonly FollowUp<F>[];
    } & Alongside)
  | ({
      readonly type: "waiting";
      readonly reason: string;
      readonly after: Duration;
      readonly cause?: Cause;
    } & Alongside)
  | ({ readonly type: "nothing"; readonly after: Duration | null } & Alongside);

/**
 * One event, along one row. Where the table has no single row for what happened, the events that follow lead on, each from the state
 * that the one before led to, and all are written at once: `happened("drained", { followedBy: [{ event: "found_unfit" }] })`.
 */
export const happened = <const E extends string, const F extends string = never>(
  event: E,
  alongside: Alongside & {
    readonly message?: string;
    readonly cause?: Cause;
    readonly data?: JsonObject;
    readonly followedBy?: readonly FollowUp<F>[];
  } = {},
): Outcome<E, F> => ({
  type: "happened",
  event,
  ...alongside,
});

/** Not there yet: why, and when the next pass is due. The reason is shown to operators; the cause says what is wrong, if anything is. */
export const waitFor = (
  reason: string,
  after: Duration,
  alongside: Alongside & { readonly cause?: Cause } = {},
): Outcome<never> => ({
  type: "waiting",
  reason,
  after,
  ...alongside,
});

/** All is well; the next pass is due after a while, or only when woken. */
export const nothingToDo = (after: Duration | null, alongside: Alongside = {}): Outcome<never> => ({
  type: "nothing",
  after,
  ...alongside,
});

export type Handler<T, C, E extends string = string, F extends string = never> = (
  thing: T,
  context: C,
) => Promise<Outcome<E, F>>;

/** A handler for each state whose rows wait for one; resting states may have one too (monitoring). */
export type Handlers<L, T, C> =
  L extends Lifecycle<T, infer _S, infer _R>
    ? {
        readonly [S in StateOf<L> as EventOf<L, S> extends never ? never : S]: Handler<
          T,
          C,
          EventOf<L, S>,
          AnyEventOf<L>
        >;
      } & {
        readonly [S in StateOf<L> as EventOf<L, S> extends never ? S : never]?: Handler<T, C, never>;
      }
    : never;
