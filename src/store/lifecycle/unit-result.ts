import type { Transaction } from "../postgres/database.ts";
import type { Wait } from "./claims/claims.ts";
import type { ThingStores } from "./things.ts";
import type { Unit } from "./unit.ts";

/**
 * committed: written. conflict: the thing changed since it was loaded, or what its effects require is not there; nothing of the
 * unit was written. fenced: somebody
 * else has the lease now. waiting: the move needs claims that others hold or bar; the set queues, and the thing is woken in its turn.
 */
export type UnitResult =
  | { readonly type: "committed" }
  | { readonly type: "conflict" }
  | { readonly type: "fenced" }
  | { readonly type: "waiting"; readonly for: Wait };

/** Of each unit in its turn, what became of it. Effects move other things through it, and those moves have effects of their own. */
export type CommitUnits = (tx: Transaction, stores: ThingStores, units: readonly Unit[]) => Promise<UnitResult[]>;
