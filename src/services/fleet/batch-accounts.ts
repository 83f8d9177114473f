import { AppError } from "../../kernel/errors.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { retryOnConflict } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import type { CheckedNode } from "./node-input.ts";
import { machineOfNode } from "./node-machine.ts";
import { namesOf, refuseTwin } from "./node-twins.ts";

/**
 * Keeps the accounts of a batch with the machines of its nodes before the batch begins: the plan of a run is shown to callers, so that it
 * must hold no password. Done again it changes nothing but the accounts.
 */
export async function keepAccounts(deps: ServiceDeps, caller: Caller, nodes: readonly CheckedNode[]): Promise<void> {
  for (const node of nodes) {
    if (node.account === null) continue;
    await leavingRefused(() =>
      retryOnConflict(() =>
        deps.db.transaction(async (tx) => {
          await lockThings(tx, namesOf(node));
          await refuseTwin(tx, { ...node, machineId: null });
          await machineOfNode(tx, deps, caller, node);
        }),
      ),
    );
  }
}

/** conflict: another caller changed the machine at the same moment. */
const OF_THIS_NODE: ReadonlySet<AppError["kind"]> = new Set(["already_exists", "failed_precondition", "conflict"]);

/** A node that cannot be onboarded keeps no other from it: the batch refuses it once it comes to it, and says why. */
async function leavingRefused(keep: () => Promise<void>): Promise<void> {
  try {
    await keep();
  } catch (error) {
    if (!(error instanceof AppError) || !OF_THIS_NODE.has(error.kind)) throw error;
  }
}
