import type { LogLine } from "../../kernel/effects.ts";
import type { JsonObject, Lifecycle, Thing } from "../../kernel/lifecycle.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import type { TakesRuns } from "../../runs/targets/target-kind.ts";
import type { DeviceTraits } from "../device/device.ts";
import type { HealthChangedBy } from "../device/health-changes.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import type { Admission } from "./admission.ts";
import type { AttentionSql } from "./attention.ts";
import type { OrderDesk } from "./orders.ts";
import type { Place } from "./places.ts";
import { type Relations, withRelatedStates } from "./relations.ts";

export interface ThingKey {
  readonly kind: string;
  readonly id: string;
}

/** One word for a key, for maps. */
export const nameOf = ({ kind, id }: ThingKey): string => `${kind}/${id}`;

const COLUMN = /^[a-z][a-z_]*$/;

/** What becomes part of a statement as a column's name must be nothing else. */
export function checkColumns(columns: readonly string[]): void {
  const odd = columns.find((column) => !COLUMN.test(column));
  if (odd !== undefined) throw new Error(`${JSON.stringify(odd)} is no column name`);
}

export interface Loaded<T> {
  readonly things: readonly T[];
  /** Rows that do not parse. They are set apart and shown, so that one of them never stops its neighbours. */
  readonly unreadable: readonly Unreadable[];
}

export interface Unreadable {
  readonly id: string;
  readonly error: string;
  /** Nothing is wrong with the row: a replica of another version can read it, and is left to work on it. */
  readonly isForAnother?: true;
}

/** Thrown while a row is parsed that only a replica of another version can read. */
export class ForAnotherReplica extends Error {}

/** What is new about a thing by what others saw of it: its columns after that, and what the journal tells of it. */
export interface Observed {
  readonly type: string;
  readonly data: JsonObject;
  readonly set: JsonObject;
  /** What the log tells of it, once it is committed. */
  readonly lines: readonly CommittedLine[];
}

export type CommittedLine = Parameters<Transaction["logWhenCommitted"]>;

export interface ThingLog {
  readonly id: string;
  readonly lines: readonly LogLine[];
}

/** A machine that somebody uses. isUnknown: nobody could tell, so that it may be in use. */
export interface MachineInUse {
  readonly id: string;
  readonly isUnknown: boolean;
}

/** The claims that a thing needs in a state. They are taken by the commit that enters it, all or none, and kept until it is left. */
export interface ClaimSet {
  readonly targets: readonly ThingKey[];
  /**
   * On whose behalf the thing works: its own, unless another one has it work. What that one holds already is no obstacle: the thing
   * works under its claim, never waits for it, and never releases it.
   */
  readonly holder: ThingKey;
  /**
   * What nobody may use: machines, or racks for all of their trays. A set of which something is in use is not granted, and holds nothing;
   * as long as it is held, nothing of it comes into use.
   */
  readonly unused?: readonly ThingKey[];
  /** How long the set, while it waits, keeps later claims off its targets; zero: not at all. Half an hour unless told. */
  readonly barsFor?: Duration;
}

/** A kind of thing: its table of transitions, its SQL table, and how to load it with what guards and handlers need. */
export interface ThingStore<T extends Thing = Thing> {
  readonly lifecycle: Lifecycle<T>;
  readonly table: string;
  /** The rack that a thing stands in, as SQL on the table `t`. Absent: it stands in none. */
  readonly rackSql?: string;
  readonly load: (db: Queryable, ids: readonly string[]) => Promise<Loaded<T>>;
  /** Its facts with a patch of them, as loading them would give them; absent: facts that are kept as they are used. */
  readonly factsWith?: (thing: T, patch: JsonObject) => T["facts"];
  /** A claim that goes on need not load it again after each of its own writes: what others change meanwhile the next lease sees. */
  readonly goesOnUnloaded?: true;
  /** States that a move of the claim's own leads into without loading it again: in them nothing is read of what is loaded with it. */
  readonly entersUnloaded?: readonly string[];
  /** Of things that are being handled, as they were loaded: those whose end a caller has requested since. */
  readonly overtaken?: (db: Queryable, things: readonly T[]) => Promise<readonly string[]>;
  /** What else is locked, together with the thing, when it goes: whatever `afterGone` touches. */
  readonly locksWhenGone?: (thing: T) => readonly ThingKey[];
  /** Runs when the rows have been deleted, in the same transaction: what only they needed goes with them. */
  readonly afterGone?: (tx: Transaction, things: readonly T[]) => Promise<void>;
  /** What the thing is part of, works on or waits for: whom its rows wake, whose rows wake it, and what is loaded with it. */
  readonly related?: Relations<T>;
  /** Whether a pass at the thing leads to nothing while it rests as it is; nor does then what is learnt about it. Absent: it may. */
  readonly restsIdle?: (thing: T) => boolean;
  /** Its resting states in which others act on its behalf, such as a machine that boots: a restored backup parks them too. Absent: none. */
  readonly actsAtRest?: readonly string[];
  /** Which claims a state with `claims` takes, of the thing as it is in that state; a claim on itself unless told. */
  readonly claims?: (thing: T) => ClaimSet;
  /** Who of those that would enter a state with `claims` may do so now, as far as their number goes. Absent: all. */
  readonly admission?: Admission<T>;
  /** How what other things saw of it is merged with what is on record; undefined when that is nothing new. */
  readonly observe?: (thing: T, observed: readonly JsonObject[]) => Observed | undefined;
  /** The columns that `observe` may set. */
  readonly observedColumns?: readonly string[];
  /** Where things keep what their steps said; each thing comes once. */
  readonly appendLogs?: (tx: Transaction, logs: readonly ThingLog[]) => Promise<void>;
  /** Lets what depends on a device's health reports follow, once they changed; the caller holds the devices' locks. */
  readonly healthChanged?: (tx: Transaction, ids: readonly string[], by: HealthChangedBy) => Promise<void>;
  /** What makes the thing a device; absent: it is none. */
  readonly device?: DeviceTraits;
  /** For a kind that is loaded together with things of others: the same store, once it is known which stores there are. */
  readonly among?: (stores: ThingStores) => ThingStore<T>;
  /** Of which things the SLAs of their states count, as SQL on the table `t`. Absent: of all. */
  readonly slaCounts?: string;
  /** Which of them need somebody, besides those whose state says so. Absent: none. */
  readonly attention?: AttentionSql;
  /** Of these things, those that somebody uses, each with the machines in use; absent: nobody uses such things. */
  readonly inUse?: (db: Queryable, ids: readonly string[]) => Promise<ReadonlyMap<string, readonly MachineInUse[]>>;
  /** Where the thing is, for callers who may see and act on some things only. Absent: it is none of theirs. */
  readonly place?: Place;
  /** Facts whose replacement by another one is an event of its own, and which; their first value is none. */
  readonly replacedFacts?: { readonly [fact: string]: string };
  /** What is asked of the thing before a run on it is on record. Absent: nothing. */
  readonly takesRuns?: TakesRuns<T>;
  /** How the thing takes what others order of it; absent: nothing can be ordered. */
  readonly orders?: OrderDesk;
  /** Request fields of the thing: the column with the pending request, and the one with the last that ended. */
  readonly requests: { readonly [field: string]: { readonly column: string; readonly lastColumn: string } };
}

export type ThingStores = ReadonlyMap<string, ThingStore>;

/** Stores of many kinds in one map; the kinds' own types end here, since the engine treats all alike. */
export function collectThingStores(stores: readonly { readonly lifecycle: { readonly kind: string } }[]): ThingStores {
  const all = new Map(stores.map((store) => [store.lifecycle.kind, store as unknown as ThingStore]));
  const among = new Map([...all].map(([kind, store]) => [kind, store.among?.(all) ?? store]));
  return new Map([...among].map(([kind, store]) => [kind, withRelatedStates(store, among)]));
}

export function storeOf(stores: ThingStores, kind: string): ThingStore {
  const store = stores.get(kind);
  if (!store) throw new Error(`no store for things of kind ${kind}`);
  return store;
}

/** Parses row by row, keeping those that do not parse apart. */
export function parseRows<Row extends { id: string }, T>(rows: readonly Row[], parse: (row: Row) => T): Loaded<T> {
  const things: T[] = [];
  const unreadable: Unreadable[] = [];
  for (const row of rows) {
    try {
      things.push(parse(row));
    } catch (error) {
      const isForAnother = error instanceof ForAnotherReplica;
      const message = error instanceof Error ? error.message : String(error);
      unreadable.push({ id: row.id, error: message, ...(isForAnother && { isForAnother }) });
    }
  }
  return { things, unreadable };
}
