import { AppError, changedByAnother } from "../../../kernel/errors.ts";
import type { Transaction } from "../../postgres/database.ts";
import { describeHeld } from "../claims/wishes.ts";
import type { ThingStores } from "../things.ts";
import { commitUnits } from "./commit-units.ts";
import { keyOf, type Unit } from "./unit.ts";

/**
 * Writes what a caller asked for: all units, or none and a refusal. A caller, unlike the engine, does not come back later to a unit
 * that waits or was overtaken: without the refusal it would take nothing for success.
 */
export async function commitOrRefuse(tx: Transaction, stores: ThingStores, units: readonly Unit[]): Promise<void> {
  const results = await commitUnits(tx, stores, units);
  for (const [at, result] of results.entries()) {
    if (result.type === "committed") continue;
    const { kind, id } = keyOf(units[at] as Unit);
    if (result.type !== "waiting") throw changedByAnother(`${kind} ${id}`);
    const { moving = { kind, id } } = result;
    throw new AppError("failed_precondition", `${moving.kind} ${moving.id} is ${describeHeld(result.for)}`);
  }
}
