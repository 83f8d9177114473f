import type { CauseOf, JsonObject, Lifecycle, StateOf } from "./lifecycle.ts";

export interface LogLine {
  readonly at: string;
  readonly step: string;
  readonly stream: "stdout" | "stderr";
  /** A line of our own; as bytes: a piece of what somebody else wrote, which may begin and end within a line. */
  readonly text: string | Uint8Array;
}

interface Touching {
  readonly kind: string;
  readonly id: string;
}

export interface CreateEffect extends Touching {
  readonly type: "create";
  readonly row: JsonObject;
  /** Otherwise a thing that exists already is left as it is. */
  readonly mustBeNew?: true;
}

export interface MoveEffect extends Touching {
  readonly type: "move";
  readonly cause: string;
  /** Where the thing does not exist, or its state does not know the cause, nothing is written of the move. */
  readonly ifPossible?: true;
  readonly message?: string;
  /** What the functions of the table's row read. */
  readonly data?: JsonObject;
  /** What is now known of the thing, written with the move. */
  readonly facts?: JsonObject;
  /** Conditions that were seen; the thing's own store merges them with those it has. */
  readonly observed?: readonly JsonObject[];
}

/** Something was learnt about another thing; it does not move. */
export interface ObserveEffect extends Touching {
  readonly type: "observe";
  readonly facts: JsonObject;
  readonly observed: readonly JsonObject[];
}

export interface LogEffect extends Touching {
  readonly type: "log";
  readonly lines: readonly LogLine[];
}

export interface WakeEffect extends Touching {
  readonly type: "wake";
}

/**
 * Something that the other thing's own store knows how to take, such as an installation that a run orders. Where it cannot be
 * taken, the outcome is dropped, and its own thing gets another pass: whoever orders checks first, and so learns why.
 */
export interface OrderEffect extends Touching {
  readonly type: "order";
  readonly order: JsonObject;
}

/** The thing must exist when the outcome is written; otherwise the outcome is dropped, and its own thing gets another pass. */
export interface RequireEffect extends Touching {
  readonly type: "require";
  /** Nor may it be marked for deletion: what is about to go is nothing to rely on. */
  readonly notDeleted?: true;
  /** It must be in one of these states. */
  readonly states?: readonly string[];
}

/**
 * A wish that is recorded on another thing, whose own table takes it up. It names the thing whose outcome it is as its origin, which
 * nothing that a caller writes can imitate.
 */
export interface RequestEffect extends Touching {
  readonly type: "request";
  readonly field: string;
  readonly wish: JsonObject;
}

/** A health alert on another thing, opened or ended beside all others that the same source has reported of it. */
export interface AlertEffect extends Touching {
  readonly type: "alert";
  readonly source: string;
  /** Which probe failed, and which part of the thing it is about; null for all of it. */
  readonly alert: { readonly id: string; readonly target: string | null };
  /** Null ends it. */
  readonly open: { readonly message: string; readonly classifications: readonly string[] } | null;
}

/** Something that an outcome does to another thing; it commits with the outcome or not at all. */
export type Effect =
  | CreateEffect
  | MoveEffect
  | ObserveEffect
  | LogEffect
  | WakeEffect
  | OrderEffect
  | RequireEffect
  | RequestEffect
  | AlertEffect;

/** A lifecycle, as far as effects need it: what they touch is named by its declaration, and never by a string of their own. */
interface OfKind {
  readonly kind: string;
}
interface WithTable extends OfKind {
  readonly transitions: readonly unknown[];
}

/** Fields of the lifecycle's things that hold a pending request. */
export type RequestFieldOf<L> = L extends Lifecycle<infer T, infer _S, infer _R> ? keyof T & `${string}Request` : never;

type Without<E, K extends keyof E> = Omit<E, "type" | "kind" | "id" | K>;

/** Makes a new thing, in its initial state. */
export const create = (
  { kind }: OfKind,
  id: string,
  row: JsonObject,
  more: Without<CreateEffect, "row"> = {},
): CreateEffect => ({ type: "create", kind, id, row, ...more });

/**
 * Moves another thing along the row of its table that this cause has. A cause that the table lacks does not compile.
 *
 * @example move(machineLifecycle, "m-1", "run_started", { data: { run: "run-1" } })
 */
export const move = <const L extends WithTable>(
  lifecycle: L,
  id: string,
  cause: CauseOf<L>,
  more: Without<MoveEffect, "cause"> = {},
): MoveEffect => ({ type: "move", kind: lifecycle.kind, id, cause, ...more });

/** Adds to what is known about another thing: a patch of its facts, and conditions that were seen. */
export const observe = (
  { kind }: OfKind,
  id: string,
  facts: JsonObject,
  observed: readonly JsonObject[] = [],
): ObserveEffect => ({ type: "observe", kind, id, facts, observed });

/** Appends to the log that the thing keeps. */
export const log = ({ kind }: OfKind, id: string, lines: readonly LogLine[]): LogEffect => ({
  type: "log",
  kind,
  id,
  lines,
});

/** Gives another thing a pass. */
export const wake = ({ kind }: OfKind, id: string): WakeEffect => ({ type: "wake", kind, id });

/** Orders of another thing what its store knows how to take. The same order again changes nothing. */
export const order = ({ kind }: OfKind, id: string, what: JsonObject): OrderEffect => ({
  type: "order",
  kind,
  id,
  order: what,
});

/**
 * Says what the outcome relies on. A state that the table lacks does not compile.
 *
 * @example require(installLifecycle, "m-2", { states: ["active"] })
 */
export const require = <const L extends WithTable>(
  lifecycle: L,
  id: string,
  more: Without<RequireEffect, "states"> & { readonly states?: readonly StateOf<L>[] } = {},
): RequireEffect => ({ type: "require", kind: lifecycle.kind, id, ...more });

/**
 * Asks another thing for something, and gives it a pass. A request that is still pending there ends as superseded.
 *
 * @example request(powerShelfLifecycle, "ps-1", "maintenanceRequest", { operation: "power_off" })
 */
export const request = <const L extends WithTable>(
  lifecycle: L,
  id: string,
  field: RequestFieldOf<L>,
  wish: JsonObject,
): RequestEffect => ({ type: "request", kind: lifecycle.kind, id, field, wish });

/** Which probe of which part of the thing, by whose report. */
interface AlertName {
  readonly source: string;
  readonly id: string;
  readonly target?: string;
}
interface OpenAlert extends AlertName {
  readonly message: string;
  readonly classifications?: readonly string[];
}
interface EndedAlert extends AlertName {
  readonly ended: true;
}

/**
 * Opens a health alert, or ends it. What an open one says may change: it stays open since when it was. One that is not open cannot end,
 * and is left alone.
 *
 * @example alert(machineLifecycle, "m-1", { source: "rack", id: "FanFailed", message: "fan 3 stands still" })
 * @example alert(machineLifecycle, "m-1", { source: "rack", id: "FanFailed", ended: true })
 */
export const alert = ({ kind }: OfKind, id: string, said: OpenAlert | EndedAlert): AlertEffect => ({
  type: "alert",
  kind,
  id,
  source: said.source,
  alert: { id: said.id, target: said.target ?? null },
  open: "ended" in said ? null : { message: said.message, classifications: said.classifications ?? [] },
});
