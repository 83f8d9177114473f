import type { Transaction } from "../../postgres/database.ts";
import type { Wait } from "../claims/claims.ts";
import type { ThingKey, ThingStores } from "../things.ts";
import type { Unit } from "./unit.ts";

/**
 * committed: written; of a pass that entered a state, with the time of that. conflict: the thing changed since it was loaded, or what its effects require is not there; nothing of the
 * unit was written. fenced: somebody else has the lease now. waiting: others hold or bar what the unit needs; of the unit nothing is
 * written but that it waits, and for whom.
 */
export type UnitResult =
  | { readonly type: "committed"; readonly stateSince?: Date }
  | { readonly type: "conflict" }
  | { readonly type: "fenced" }
  | Waiting;

/** The set of a move of its own queues, and its thing is woken in its turn. */
export interface Waiting {
  readonly type: "waiting";
  readonly for: Wait;
  /** The thing that an effect moves, and that somebody else works on: nothing queues, and the unit is tried again. */
  readonly moving?: ThingKey;
}

/** Of each unit in its turn, what became of it. */
export type CommitUnits = (tx: Transaction, stores: ThingStores, units: readonly Unit[]) => Promise<UnitResult[]>;
