import { AppError } from "../../kernel/errors.ts";
import { parsePowerShelfId } from "../../kernel/ids.ts";
import { runningRequestOf } from "../../lifecycles/power-shelf/running-request.ts";
import { commitOrRefuse } from "../../store/lifecycle/commit/commit-or-refuse.ts";
import { withdrawPending } from "../../store/lifecycle/commit/end-requests.ts";
import { announce } from "../../store/lifecycle/journal.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import { listPowerShelves, type PowerShelfRecord } from "../../store/power-shelf/power-shelves.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { unknownShelf } from "./power-shelves.ts";

const KIND = "power_shelf";

export interface CancelMaintenance {
  readonly id: string;
  /** Empty: whatever waits or is being carried out. */
  readonly requestId: string;
}

/**
 * Ends what was requested of a shelf. A request that waits is withdrawn at once. One that is being carried out is ended by the controller,
 * which alone knows that nothing of it is on its way any more. Asking again is harmless.
 */
export async function cancelMaintenance(deps: ServiceDeps, caller: Caller, input: CancelMaintenance): Promise<void> {
  const id = parsePowerShelfId(input.id, "id");
  const isMeant = (requestId: string | undefined) =>
    requestId !== undefined && (input.requestId === "" || input.requestId === requestId);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: KIND, id }]);
    const [shelf] = await listPowerShelves(tx, { ids: [id] });
    if (!shelf) throw unknownShelf(id);
    const running = runningRequestOf(shelf);
    const pending = shelf.maintenanceRequest?.id === running ? undefined : shelf.maintenanceRequest?.id;
    if (!isMeant(running) && !isMeant(pending)) throw nothingToCancel(shelf, input.requestId);
    if (running !== undefined && isMeant(running) && shelf.facts.cancelRequest?.requestId !== running) {
      const { actor } = doneBy(caller);
      const cancelRequest = { requestId: running, by: actor, at: nowOf(deps).toISOString() };
      await commitOrRefuse(tx, deps.stores, [
        { kind: KIND, thing: shelf, facts: { cancelRequest }, ...doneBy(caller) },
      ]);
    }
    if (isMeant(pending))
      await withdrawPending(tx, storeOf(deps.stores, KIND), { field: "maintenanceRequest", id, ...doneBy(caller) });
    await work.wake(tx, [{ kind: KIND, id }]);
    announce(tx);
  });
}

function nothingToCancel({ id, lastMaintenanceRequest: last }: PowerShelfRecord, requestId: string): AppError {
  const which = requestId === "" ? "no request that waits or is being carried out" : `no such request ${requestId}`;
  const ended = last === null ? "" : `; its last one, ${last.operation}, is ${last.outcome}`;
  return new AppError("failed_precondition", `power shelf ${id} has ${which}${ended}`, {
    field: requestId === "" ? "id" : "request_id",
    next: `millwright power-shelf show ${id}`,
  });
}
