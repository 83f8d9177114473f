import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import type { CommitUnits } from "./commit/unit-result.ts";
import type { ThingKey, ThingStores } from "./things.ts";

/** What one thing orders of another, in its own commit. */
export interface PlacedOrder extends ThingKey {
  readonly order: JsonObject;
  /** Who orders, for the history. */
  readonly by: string;
}

/** How things of a kind take orders. The things are locked, and so is whatever else the orderer has named among its effects. */
export interface OrderDesk {
  /** Why orders cannot be placed, for those that cannot. Changes nothing. */
  refusals(db: Queryable, orders: readonly PlacedOrder[]): Promise<ReadonlyMap<PlacedOrder, string>>;
  /** Places orders of which none is refused. One that was placed before is left as it is. */
  place(
    tx: Transaction,
    placing: {
      readonly stores: ThingStores;
      /** Writes moves: the writer of states places orders, so that it is handed in and not imported. */
      readonly commit: CommitUnits;
      readonly orders: readonly PlacedOrder[];
    },
  ): Promise<void>;
}
