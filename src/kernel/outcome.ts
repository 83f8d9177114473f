import type { EventOf, JsonObject, Lifecycle, StateOf } from "./lifecycle.ts";
import type { Duration } from "./time/duration.ts";

export interface LogLine {
  readonly at: string;
  readonly step: string;
  readonly stream: "stdout" | "stderr";
  /** A line of our own; as bytes: a piece of what somebody else wrote, which may begin and end within a line. */
  readonly text: string | Uint8Array;
}

/** Something that the outcome does to another thing; it commits with the outcome or not at all. */
export type Effect =
  | {
      readonly type: "create";
      readonly kind: string;
      readonly id: string;
      readonly row: JsonObject;
      /** Otherwise a thing that exists already is left as it is. */
      readonly mustBeNew?: true;
    }
  | {
      readonly type: "move";
      readonly kind: string;
      readonly id: string;
      readonly cause: string;
      /** Where the thing is not there, or its state does not know the cause, nothing is to be done. */
      readonly ifPossible?: true;
      readonly message?: string;
      /** What the table's row is told. */
      readonly data?: JsonObject;
      /** What is now known of the thing, written with the move. */
      readonly facts?: JsonObject;
      /** Conditions that were seen; the thing's own store merges them with those it has. */
      readonly observed?: readonly JsonObject[];
    }
  | {
      /** Something was learnt about another thing; it does not move. */
      readonly type: "observe";
      readonly kind: string;
      readonly id: string;
      readonly facts: JsonObject;
      readonly observed: readonly JsonObject[];
    }
  | { readonly type: "log"; readonly kind: string; readonly id: string; readonly lines: readonly LogLine[] }
  | { readonly type: "wake"; readonly kind: string; readonly id: string }
  | {
      /** It must be there when the outcome is written; otherwise the outcome is dropped, and its thing looked at again. */
      readonly type: "require";
      readonly kind: string;
      readonly id: string;
      /** Nor may it be marked for deletion: what is about to go is nothing to rely on. */
      readonly notDeleted?: true;
    };

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
