import { AppError } from "../../kernel/errors.ts";
import { parseRackId } from "../../kernel/ids.ts";
import type { RackRequest } from "../../lifecycles/rack/rack.ts";
import { withdrawPending } from "../../store/lifecycle/commit/end-requests.ts";
import { announce } from "../../store/lifecycle/journal.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { recordRequest } from "../../store/lifecycle/requests.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import { applyVerb } from "../../store/lifecycle/verbs.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import { listRacksFailedByThemselves, listRacksToAdmit } from "../../store/rack/admission.ts";
import { listRacks, type RackRecord } from "../../store/rack/racks.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { describeInitiator, doneBy, parseReference } from "../call/initiator.ts";
import { cancelInTransaction } from "../run/cancel.ts";
import { findRack, RACK_KIND, rackKey, refuseDeleted } from "./find-rack.ts";
import {
  checkActivities,
  checkOverride,
  checkScope,
  refuseAssigned,
  refuseForeign,
  refuseInMaas,
  type StartRackMaintenance,
  wishOf,
} from "./maintenance-input.ts";

export type { StartRackMaintenance } from "./maintenance-input.ts";

/** Records the request; the rack carries it out once it has all its devices. Of calls at the same moment one is accepted. */
export async function startRackMaintenance(
  deps: ServiceDeps,
  caller: Caller,
  input: StartRackMaintenance,
): Promise<{ readonly requestId: string }> {
  const asked = checkInput(input);
  const { rackId, scope, activities, includeAssigned, reference } = asked;
  return deps.db.transaction(async (tx) => {
    await lockThings(tx, [rackKey(rackId)]);
    await findStartable(tx, asked);
    const requestId = await recordRequest(tx, storeOf(deps.stores, RACK_KIND), {
      field: "maintenanceRequest",
      ids: [rackId],
      initiator: describeInitiator(caller.name, reference),
      address: caller.address,
      wish: wishOf(scope, activities, {
        reference,
        include_assigned: includeAssigned,
        traceparent: caller.traceparent,
      }),
    });
    return { requestId };
  });
}

/** What was asked for, well-formed. */
export function checkInput(input: StartRackMaintenance): StartRackMaintenance {
  return {
    rackId: parseRackId(input.rackId, "rack_id"),
    scope: checkScope(input.scope),
    activities: checkActivities(input.activities),
    includeAssigned: checkOverride(input.includeAssigned),
    reference: parseReference(input.reference) || undefined,
  };
}

/** The rack, as long as it can take the request now. Whoever records the request holds the rack's lock. */
export async function findStartable(
  db: Queryable,
  { rackId, scope, includeAssigned }: StartRackMaintenance,
): Promise<RackRecord> {
  const rack = await findRack(db, rackId);
  checkStartable(rack);
  refuseForeign(rack, scope);
  refuseInMaas(rack, scope);
  if (includeAssigned === undefined) refuseAssigned(rack, scope);
  return rack;
}

/** Whether the rack can take a request now; `forge.Forge` answers INVALID_ARGUMENT to both refusals. */
function checkStartable(rack: RackRecord): void {
  refuseDeleted(rack);
  const { id, state, maintenanceRequest } = rack;
  const refuse = (why: string) =>
    new AppError("failed_precondition", `rack ${id} ${why}`, { field: "rack_id", next: `millwright rack show ${id}` });
  if (maintenanceRequest !== null)
    throw refuse(`has a maintenance request already: ${describeRequest(maintenanceRequest)}`);
  if (state.name !== "ready" && state.name !== "error")
    throw refuse(`is ${state.name}: maintenance can be requested only in ready and error`);
}

const describeRequest = ({ initiator, requested_at }: RackRequest): string => `by ${initiator} at ${requested_at}`;

/** Stops what is under way, and withdraws what waits. A device that is being flashed is flashed to the end. Asking again is harmless. */
export async function terminateRackMaintenance(deps: ServiceDeps, caller: Caller, id: string): Promise<void> {
  const rackId = parseRackId(id, "rack_id");
  const {
    state: { run: runId },
  } = await findRack(deps.db, rackId);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [rackKey(rackId), ...(runId === undefined ? [] : [{ kind: "run", id: runId }])]);
    const rack = await findRack(tx, rackId);
    const { run } = rack.state;
    if (run !== undefined && run !== runId)
      throw new AppError("conflict", `rack ${rackId} was changed by another call; call again`);
    const isPending = rack.maintenanceRequest !== null || rack.reprovisionRequest !== null;
    if (run === undefined && !isPending)
      throw new AppError("failed_precondition", `rack ${rackId} is ${rack.state.name}: there is nothing to terminate`, {
        field: "rack_id",
        next: `millwright rack show ${rackId}`,
      });
    if (run !== undefined) await cancelInTransaction(tx, deps, caller, run);
    for (const field of ["maintenanceRequest", "reprovisionRequest"])
      await withdrawPending(tx, storeOf(deps.stores, RACK_KIND), { field, id: rackId, ...doneBy(caller) });
    await work.wake(tx, [rackKey(rackId)]);
    announce(tx);
  });
}

/** Asks for the default firmware on all devices that nobody uses. It acts as soon as the rack is ready; asking again is harmless. */
export async function reprovisionRack(
  deps: ServiceDeps,
  caller: Caller,
  input: { readonly rackId: string; readonly reference?: string | undefined },
): Promise<{ readonly requestId: string }> {
  const rackId = parseRackId(input.rackId, "rack_id");
  const reference = parseReference(input.reference) || undefined;
  return deps.db.transaction(async (tx) => {
    await lockThings(tx, [rackKey(rackId)]);
    const rack = await findRack(tx, rackId);
    refuseDeleted(rack);
    const { reprovisionRequest: pending, state } = rack;
    const isCarriedOut = state.trigger === "reprovision" && pending !== null;
    if (pending !== null && !isCarriedOut) return { requestId: pending.id };
    const requestId = await recordRequest(tx, storeOf(deps.stores, RACK_KIND), {
      field: "reprovisionRequest",
      ids: [rackId],
      initiator: describeInitiator(caller.name, reference),
      address: caller.address,
      wish: wishOf({ machine_ids: [], switch_ids: [], power_shelf_ids: [] }, [], { reference }),
    });
    return { requestId };
  });
}

/**
 * Lets maintenance begin by itself again after it has failed on too many racks: those failures count no more. What fails from now on
 * does. Asking again is harmless.
 */
export async function resumeRackMaintenance(
  deps: ServiceDeps,
  caller: Caller,
): Promise<{ readonly overlooked: readonly string[]; readonly waiting: readonly string[] }> {
  const overlooked = await listRacksFailedByThemselves(deps.db);
  for (const id of overlooked)
    await deps.db.transaction(async (tx) => {
      await lockThings(tx, [rackKey(id)]);
      // One that is gone by now counts no more either.
      const [rack] = await listRacks(tx, { ids: [id] });
      const verb = { ...rackKey(id), owner: "caller", name: "overlook_failure", ...doneBy(caller) } as const;
      if (rack) await applyVerb(tx, deps.stores, verb);
    });
  return { overlooked, waiting: await wakeRacksToAdmit(deps) };
}

/** Those that wait to begin look again. */
async function wakeRacksToAdmit({ db }: Pick<ServiceDeps, "db">): Promise<readonly string[]> {
  const waiting = await listRacksToAdmit(db, null);
  await db.transaction(async (tx) => {
    await work.wake(tx, waiting.map(rackKey));
    announce(tx);
  });
  return waiting;
}

/** Ends an error that a failed activity or validation left, without another try. */
export async function clearRackError(deps: ServiceDeps, caller: Caller, id: string): Promise<void> {
  const rackId = parseRackId(id, "rack_id");
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [rackKey(rackId)]);
    const { state } = await findRack(tx, rackId);
    if (state.name !== "error")
      throw new AppError("failed_precondition", `rack ${rackId} is ${state.name}: it has no error to clear`, {
        field: "rack_id",
        next: `millwright explain rack ${rackId}`,
      });
    await applyVerb(tx, deps.stores, { ...rackKey(rackId), owner: "caller", name: "clear_error", ...doneBy(caller) });
  });
  await wakeRacksToAdmit(deps);
}
