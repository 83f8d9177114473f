import type { Effect } from "./effects.ts";
import type { EventOf, JsonObject, Lifecycle, StateOf } from "./lifecycle.ts";
import type { Duration } from "./time/duration.ts";

interface Alongside {
  /** A patch of the thing's own facts: what was read. */
  readonly facts?: JsonObject;
  readonly effects?: readonly Effect[];
}

/** What a handler reports. It never names a state: the table says where an event leads. */
export type Outcome<E extends string = string> =
  | ({ readonly type: "happened"; readonly event: E; readonly message?: string } & Alongside)
  | ({ readonly type: "waiting"; readonly reason: string; readonly after: Duration } & Alongside)
  | ({ readonly type: "nothing"; readonly after: Duration | null } & Alongside);

export const happened = <const E extends string>(
  event: E,
  alongside: Alongside & { message?: string } = {},
): Outcome<E> => ({
  type: "happened",
  event,
  ...alongside,
});

/** Not there yet: why, and when to look again. The reason is shown to operators. */
export const waitFor = (reason: string, after: Duration, alongside: Alongside = {}): Outcome<never> => ({
  type: "waiting",
  reason,
  after,
  ...alongside,
});

/** All is well; look again after a while, or only when woken. */
export const nothingToDo = (after: Duration | null, alongside: Alongside = {}): Outcome<never> => ({
  type: "nothing",
  after,
  ...alongside,
});

export type Handler<T, C, E extends string = string> = (thing: T, context: C) => Promise<Outcome<E>>;

/** A handler for each state whose rows wait for one; resting states may have one too (monitoring). */
export type Handlers<L, T, C> =
  L extends Lifecycle<T, infer _S, infer _R>
    ? { readonly [S in StateOf<L> as EventOf<L, S> extends never ? never : S]: Handler<T, C, EventOf<L, S>> } & {
        readonly [S in StateOf<L> as EventOf<L, S> extends never ? S : never]?: Handler<T, C, never>;
      }
    : never;
