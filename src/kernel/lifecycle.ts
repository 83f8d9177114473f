import type { Cause } from "./causes.ts";
import type { Duration } from "./time/duration.ts";

/** In the first column: every state but the row's own target and the terminal ones. */
export const ANY = "*";
/** In the last column: the thing's row is deleted. */
export const GONE = "(gone)";
/** In the last column: the state stays, and only what the row `sets` changes. */
export const STAY = "(stay)";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

/** For what is JSON already: neither a list nor a single value. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether both say the same; fields that are undefined are not there. */
export function sameJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  const [left, right] = [fieldsOf(a), fieldsOf(b)];
  return (
    Array.isArray(a) === Array.isArray(b) &&
    left.length === right.length &&
    left.every(([name, value]) => sameJson(value, (b as JsonObject)[name]))
  );
}
const fieldsOf = (value: object): [string, Json][] => Object.entries(value).filter(([, field]) => field !== undefined);

/** What every thing with a lifecycle has; `state` is the table's word plus what the transition into it carried. */
export interface Thing {
  readonly id: string;
  /** Grows with every write to the thing; events carry it. */
  readonly version: number;
  /** Grows with what guards and handlers read; outcomes computed from an older one are dropped. */
  readonly basis: number;
  readonly state: { readonly name: string; readonly [carried: string]: Json | undefined };
  readonly stateSince: Date;
  readonly stateVersion: number;
  /** What was read from the device; patched, never replaced. */
  readonly facts: object;
  /** Why it is still in its state; null right after a transition that says it all. */
  readonly outcome: StoredOutcome | null;
  /** The things that it has to do with, by the relations of its store that load their states; null: there is none. */
  readonly related?: { readonly [relation: string]: RelatedState | null };
}

/** Another thing, as far as guards and handlers may know it. */
export interface RelatedState {
  readonly kind: string;
  readonly id: string;
  readonly state: string;
}

/** How the last pass of a thing ended, as it is shown to operators. */
export interface StoredOutcome {
  readonly type: "waiting" | "failing" | "needs_intervention";
  readonly reason: string;
  /** Why, for programs; absent where nothing is wrong, and in rows of a version that did not name causes. */
  readonly cause?: Cause;
  /** Since when it waits, or passes fail; given by the store. */
  readonly since?: string;
  /** It waits for claims, and for longer than it said that it would keep others from them; given by the store. */
  readonly barExpired?: true;
}

/** What is wrong and why are the same; facts that differ tell nobody anything new. */
export const isSameOutcome = (a: StoredOutcome | null, b: StoredOutcome | null): boolean =>
  a?.type === b?.type && a?.reason === b?.reason && a?.cause?.code === b?.cause?.code;

export interface StateSpec {
  readonly doc: string;
  /** A thing may stay here for ever. Every other state is at work and has an SLA or is terminal. */
  readonly rest?: true;
  /** Nothing leads out, and `ANY` rows do not apply. */
  readonly terminal?: true;
  /**
   * Something went wrong, and somebody should know: lists, counts, metrics and alerts go by this word, and name no state. A terminal state with
   * it is an end without success: nobody can act on the thing any more, but it counts among what failed.
   */
  readonly trouble?: true;
  /** A thing that is here for longer is shown as stuck. */
  readonly sla?: Duration;
  /** After this long, waiting and retrying end along the state's failure row. */
  readonly deadline?: Duration;
  /** Entering needs the claims that the thing's store names, all or none; they are held until a state without this is entered. */
  readonly claims?: true;
}

/** What made a row apply, as far as the row's functions need it. */
export interface Happening {
  readonly message?: string | undefined;
  /** Why, where it is a failure. */
  readonly cause?: Cause | undefined;
  readonly data?: JsonObject | undefined;
}

type Guard<T> = (thing: T) => boolean;

/** Who owns an edge. */
export const OWNERS = ["controller", "handler", "caller", "agent", "other"] as const;
export type Owner = (typeof OWNERS)[number];

export interface Trigger<T, O extends Owner = Owner, N extends string = string> {
  readonly owner: O;
  readonly name: N;
  readonly failure: boolean;
  readonly guard?: Guard<T>;
}

/** The controller moves the thing as soon as the guard holds; rows of a state are tried from top to bottom. */
export const when = <T>(guard: Guard<T>): Trigger<T, "controller"> => ({
  owner: "controller",
  name: guard.name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`), // the one spelling that people see
  failure: false,
  guard,
});
const named =
  <O extends Owner>(owner: O, failure = false) =>
  <const N extends string>(name: N): Trigger<unknown, O, N> => ({ owner, name, failure });

/** The state's handler saw this happen. */
export const on = named("handler");
/** The state's handler failed for good, or its deadline passed. At most one such row a state. */
export const onFailure = named("handler", true);
/** A caller's verb, applied in the caller's transaction. */
export const asked = named("caller");
/** The thing's own agent said so. */
export const reported = named("agent");
/** Another thing, run or reconciler did this, in its own transaction. */
export const caused = named("other");

/** The request that the state carries and that ends with the transition. A newer one in the same field stays pending. */
export interface RequestClear<T> {
  readonly field: keyof T & string;
  /** As the state carries it: at least its `id`. */
  readonly carried: (thing: T) => Json | undefined;
  /** Absent: failure rows end it as failed, all others as completed. Rows that another thing causes must say it. */
  readonly outcome?: "failed";
}

export interface RowOptions<T> {
  /** A second condition on rows that are not the controller's. */
  readonly provided?: Guard<T>;
  /** What the new state carries. */
  readonly carries?: (thing: T, happening: Happening) => JsonObject;
  readonly clears?: readonly RequestClear<T>[];
  /** How what it clears has ended, where neither success nor failure ends it. */
  readonly clearedAs?: "withdrawn";
  /** Request fields whose requests, pending or carried, end here as withdrawn: nobody will carry them out any more. */
  readonly withdraws?: readonly (keyof T & string)[];
  /** Request fields whose pending request ends here as superseded: the row takes up another request in its place. */
  readonly supersedes?: readonly (keyof T & string)[];
  /** Request fields whose pending request ends here as expired, with what the thing waited for all the time. */
  readonly expires?: readonly (keyof T & string)[];
  /** Request fields whose pending request ends here as failed, with what stood in its way. */
  readonly refuses?: readonly (keyof T & string)[];
  /** A patch of the thing's facts. */
  readonly sets?: (thing: T, happening: Happening) => JsonObject;
  /** Why this edge exists although the specification does not draw it. */
  readonly added?: string;
}

export type Row<T, S extends string = string, Tr = Trigger<T>> =
  | readonly [from: S | typeof ANY, trigger: Tr, to: S | typeof GONE | typeof STAY]
  | readonly [from: S | typeof ANY, trigger: Tr, to: S | typeof GONE | typeof STAY, options: RowOptions<T>];

export interface Lifecycle<T, S extends string = string, R extends readonly Row<T, S>[] = readonly Row<T, S>[]> {
  readonly kind: string;
  readonly initial: S;
  /** Other states in which a new thing may begin, where whoever makes it says so. Absent: there are none. */
  readonly alsoInitial?: readonly S[];
  readonly states: { readonly [name in S]: StateSpec };
  readonly transitions: R;
  /** Facts that are kept, but of which no event tells: they change all the time, or are not for everybody. */
  readonly quietFacts: readonly string[];
  /** Every transition is told to the log, also those that nobody asked for. */
  readonly toldInFull?: true;
  readonly listFacts: ListFacts;
}

/**
 * Facts that are lists of parts with a name each: an event tells of the parts that changed, and not of all; and of each part
 * whatever is not `untold`. Where parts of the same name can follow one another, `counted` names the field that counts them: 1
 * where it is left out.
 */
export type ListFacts = {
  readonly [fact: string]: { readonly untold: readonly string[]; readonly counted?: string };
};

/** The states and the events of each state, as types: a handler can only say what its state's rows know. */
export type StateOf<L> = L extends Lifecycle<infer _T, infer S, infer _R> ? S : never;
type RowsOf<L> = L extends { readonly transitions: infer R extends readonly unknown[] } ? R[number] : never;
export type EventOf<L, S extends string> =
  RowsOf<L> extends infer Each
    ? Each extends readonly [
        infer From,
        { readonly owner: "handler"; readonly name: infer N extends string },
        infer To,
        ...unknown[],
      ]
      ? From extends S
        ? N
        : From extends typeof ANY
          ? To extends S
            ? never
            : N
          : never
      : never
    : never;

/** What handlers can report, in whatever state: the names of all `on` and `onFailure` rows. */
export type AnyEventOf<L> =
  RowsOf<L> extends infer Each
    ? Each extends readonly [
        unknown,
        { readonly owner: "handler"; readonly name: infer N extends string },
        ...unknown[],
      ]
      ? N
      : never
    : never;

/** What other things can cause, in whatever state: the names of all `caused` rows. */
export type CauseOf<L> =
  RowsOf<L> extends infer Each
    ? Each extends readonly [unknown, { readonly owner: "other"; readonly name: infer N extends string }, ...unknown[]]
      ? N
      : never
    : never;

/**
 * Declares a lifecycle. Unknown states do not compile; what types cannot see is refused here, at load: a state that nothing
 * reaches, a working state without SLA or exit, two failure rows, a deadline without one, a row that an earlier one always
 * forestalls.
 */
export function defineLifecycle<T extends Thing>() {
  return <const S extends string, const R extends readonly Row<T, NoInfer<S>>[]>(definition: {
    readonly kind: string;
    readonly initial: NoInfer<S>;
    readonly alsoInitial?: readonly NoInfer<S>[];
    readonly states: { readonly [name in S]: StateSpec };
    readonly transitions: R;
    readonly quietFacts?: readonly string[];
    readonly toldInFull?: true;
    readonly listFacts?: ListFacts;
  }): Lifecycle<T, S, R> => {
    const lifecycle = { quietFacts: [], listFacts: {}, ...definition };
    const faults = findFaults(lifecycle);
    if (faults.length > 0) throw new Error(`lifecycle ${definition.kind}: ${faults.join("; ")}`);
    return lifecycle;
  };
}

/** The rows that can apply in a state, `ANY` rows included. */
export function rowsFrom<T, S extends string>(lifecycle: Lifecycle<T, S>, state: S): readonly Row<T, S>[] {
  if (lifecycle.states[state]?.terminal) return [];
  return lifecycle.transitions.filter(([from, , to]) => from === state || (from === ANY && to !== state));
}

function findFaults<T extends Thing, S extends string>(lifecycle: Lifecycle<T, S>): string[] {
  const faults: string[] = [];
  const names = Object.keys(lifecycle.states) as S[];
  const known = new Set<string>(names);
  for (const [from, trigger, to, options] of lifecycle.transitions) {
    if (from !== ANY && !known.has(from)) faults.push(`a row starts in ${from}, which is no state`);
    if (to !== GONE && to !== STAY && !known.has(to)) faults.push(`a row leads to ${to}, which is no state`);
    if (trigger.name === "") faults.push(`a guard out of ${from} has no name; history and docs show it`);
    if (trigger.owner === "controller" && options?.provided)
      faults.push(`${trigger.name} out of ${from} is the controller's: what must hold is its guard, not provided`);
    if (from !== ANY && known.has(from) && lifecycle.states[from].terminal)
      faults.push(`${from} is terminal, yet a row leaves it`);
  }
  for (const name of [lifecycle.initial, ...(lifecycle.alsoInitial ?? [])])
    if (!known.has(name)) faults.push(`the initial state ${name} is no state`);
    else if (lifecycle.states[name].trouble)
      faults.push(`the initial state ${name} means trouble, yet nothing went wrong`);
  if (faults.length > 0) return faults;

  const reached = new Set<S>([lifecycle.initial, ...(lifecycle.alsoInitial ?? [])]);
  for (const state of reached) {
    for (const [, , to] of rowsFrom(lifecycle, state)) if (to !== GONE && to !== STAY) reached.add(to);
  }
  for (const name of names) {
    const spec = lifecycle.states[name];
    const rows = rowsFrom(lifecycle, name);
    const failures = new Set(rows.filter(([, trigger]) => trigger.failure).map(([, trigger]) => trigger.name));
    if (!reached.has(name)) faults.push(`nothing leads to ${name}`);
    if ((spec.rest || spec.terminal) && (spec.sla ?? spec.deadline) !== undefined)
      faults.push(`${name} ${spec.rest ? "rests" : "is terminal"}, so it has neither SLA nor deadline`);
    if (!spec.rest && !spec.terminal && spec.sla === undefined) faults.push(`${name} is at work, so it needs an SLA`);
    if (!spec.rest && !spec.terminal && rows.every(([, , to]) => to === STAY))
      faults.push(`${name} is at work and has no exit`);
    if (failures.size > 1) faults.push(`${name} has more than one failure event`);
    if (spec.deadline !== undefined && failures.size === 0) faults.push(`${name} has a deadline but no failure row`);
  }
  return [...faults, ...findForestalled(lifecycle)];
}

/** Rows that can never apply, since an earlier one without a condition answers to the same trigger wherever they could. */
function findForestalled<T, S extends string>(lifecycle: Lifecycle<T, S>): string[] {
  const alive = new Set<Row<T, S>>();
  for (const name of Object.keys(lifecycle.states) as S[]) {
    const settled = new Set<string>();
    for (const row of rowsFrom(lifecycle, name)) {
      const [, { owner, name: trigger }, , options] = row;
      const key = `${owner} ${trigger}`;
      if (!settled.has(key)) alive.add(row);
      // What a controller's guard says is not to be seen from here; two rows with the same one are a slip all the same.
      if (options?.provided === undefined) settled.add(key);
    }
  }
  return lifecycle.transitions
    .filter((row) => !alive.has(row))
    .map(
      ([from, { name }, to]) =>
        `the row ${from} → ${to} on ${name} never applies: an earlier one always comes before it`,
    );
}
