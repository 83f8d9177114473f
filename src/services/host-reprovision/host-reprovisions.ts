import { AppError } from "../../kernel/errors.ts";
import { parseMachineId } from "../../kernel/ids.ts";
import { hostReprovisionLifecycle } from "../../lifecycles/host-reprovision/lifecycle.ts";
import { isInMaas, ONLY_MAAS } from "../../lifecycles/machine/in-maas.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import { list as listClaims } from "../../store/lifecycle/claims/claims.ts";
import { create } from "../../store/lifecycle/create.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { recordRequest } from "../../store/lifecycle/requests.ts";
import { storeOf, type ThingKey } from "../../store/lifecycle/things.ts";
import { listMachines } from "../../store/machine/machines.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { describeInitiator, doneBy, parseReference } from "../call/initiator.ts";

const { kind } = hostReprovisionLifecycle;

export const hostReprovisionKey = (id: string): ThingKey => ({ kind, id });

/** Every machine has one, from when it is put on record; the caller holds its lock. A server of other things has none. */
export async function createHostReprovision(
  tx: Transaction,
  { stores }: Pick<ServiceDeps, "stores">,
  caller: Caller,
  id: string,
): Promise<void> {
  const store = stores.get(kind);
  if (store) await create(tx, store, { id, row: {}, ifMissing: true, ...doneBy(caller) });
}

export interface ReprovisionMachine {
  readonly machineId: string;
  /** Also a tray that waits for its rack renews its firmware by itself. */
  readonly reset: boolean;
  readonly reference?: string | undefined;
}

/**
 * Asks a tray to compare its firmware with the default of its rack's hardware type, and to write what differs. It takes the claim on the
 * machine, and waits while the machine is in use.
 */
export async function reprovisionMachine(
  deps: ServiceDeps,
  caller: Caller,
  input: ReprovisionMachine,
): Promise<{ readonly requestId: string }> {
  const id = parseMachineId(input.machineId, "machine_id");
  const reference = parseReference(input.reference);
  return deps.db.transaction(async (tx) => {
    const machine: ThingKey = { kind: machineLifecycle.kind, id };
    await lockThings(tx, [machine, hostReprovisionKey(id)]);
    const [known] = await listMachines(tx, { ids: [id] });
    if (!known)
      throw new AppError("not_found", `machine ${id} does not exist`, {
        field: "machine_id",
        next: "millwright machine list",
      });
    if (known.state.name === "RETIRED")
      throw new AppError("failed_precondition", `machine ${id} is RETIRED: nothing can be done with it`, {
        field: "machine_id",
      });
    if (isInMaas(known.spec))
      throw new AppError("failed_precondition", `of machine ${id} ${ONLY_MAAS}: its firmware is not Millwright's`, {
        field: "machine_id",
        next: "millwright fleet list",
      });
    if (input.reset) await refuseUnderRack(tx, machine);
    await createHostReprovision(tx, deps, caller, id);
    const requestId = await recordRequest(tx, storeOf(deps.stores, kind), {
      field: "reprovisionRequest",
      ids: [id],
      initiator: describeInitiator(caller.name, reference),
      address: caller.address,
      wish: { reset: input.reset },
    });
    return { requestId };
  });
}

/** What the rack is doing to the tray ends by itself; to begin it anew in the middle would flash the tray twice. */
async function refuseUnderRack(tx: Transaction, machine: ThingKey): Promise<void> {
  const held = (await listClaims(tx, [machine])).find(
    ({ standing, holder }) => standing === "granted" && holder.kind === "rack",
  );
  if (!held) return;
  throw new AppError(
    "failed_precondition",
    `machine ${machine.id} cannot be reset: rack ${held.holder.id} works on it; wait until its maintenance has ended, or terminate it`,
    { field: "reset", next: `millwright rack maintenance terminate ${held.holder.id}` },
  );
}
