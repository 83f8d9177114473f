import { AppError } from "../../kernel/errors.ts";
import { runLifecycle } from "../../runs/model/lifecycle.ts";
import type { Plan } from "../../runs/model/plan/plan.ts";
import { startsRun } from "../../runs/targets/new-run.ts";
import { type ComponentKind, findPlacedDevices, type PlacedDevice } from "../../store/component/devices.ts";
import { findActiveRun } from "../../store/component/firmware-runs.ts";
import { describeInUse, findInUse } from "../../store/lifecycle/claims/in-use.ts";
import { create } from "../../store/lifecycle/create.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import type { Queryable, Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { describeInitiator, doneBy } from "../call/initiator.ts";
import { NOUNS, unknownComponent } from "./component-ids.ts";

export const refusal = (message: string, next?: string): AppError =>
  new AppError("failed_precondition", message, { forgeCode: "failed_precondition", ...(next && { next }) });

export interface DeviceRun {
  readonly kind: Exclude<ComponentKind, "machine">;
  readonly id: string;
  /** Of the call: however often it is carried out, there is one run a device. */
  readonly requestId: string;
  /** Whether trays lose power or their fabric by it. */
  readonly disturbs: boolean;
  readonly planFor: (tx: Transaction, device: PlacedDevice) => Promise<Plan>;
}

/** Starts a run on one switch or shelf. It waits for whoever works on the device, and shows how far it is. */
export async function startDeviceRun(deps: ServiceDeps, caller: Caller, input: DeviceRun): Promise<void> {
  const { kind, id, requestId, disturbs, planFor } = input;
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind, id }]);
    const device = (await findPlacedDevices(tx, kind, [id])).get(id);
    if (!device) throw unknownComponent(kind, id);
    if (device.isLeaving) throw refusal(`${NOUNS[kind]} ${id} is marked for deletion`);
    const plan = await planFor(tx, device);
    const active = await findActiveRun(tx, kind, id);
    if (active !== undefined)
      throw new AppError("already_exists", `run ${active} works on ${NOUNS[kind]} ${id} already`, {
        next: `millwright run show ${active}`,
      });
    if (disturbs && device.rackId !== null) await refuseInUse(tx, deps, device.rackId, `${NOUNS[kind]} ${id}`);
    const initiator = describeInitiator(caller.name, undefined);
    const { id: runId, row } = startsRun({ target: { kind, id }, plan, initiator }, [requestId, id]);
    await create(tx, storeOf(deps.stores, runLifecycle.kind), { id: runId, row, ...doneBy(caller) });
  });
}

/** What a machine in use depends on is not touched. The commit that takes the claims checks it again; this answers the caller at once. */
export async function refuseInUse(
  db: Queryable,
  { stores }: Pick<ServiceDeps, "stores">,
  rackId: string,
  what: string,
): Promise<void> {
  const inUse = await findInUse(db, stores, [{ kind: "rack", id: rackId }]);
  if (inUse.length > 0) throw refusal(`${what} serves trays ${describeInUse(inUse)}`, `millwright rack show ${rackId}`);
}
