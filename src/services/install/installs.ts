import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Install } from "../../lifecycles/install/install.ts";
import { type InstallRecord, loadInstalls } from "../../store/install/installs.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { commitOrRefuse } from "../../store/lifecycle/commit/commit-or-refuse.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { machineKey } from "../machine/machines.ts";
import { armedBy } from "./boot/arming.ts";
import { holdKnownGroup } from "./device-groups.ts";
import { INSTALL_KIND, installKey } from "./key.ts";
import type { HardwareFact } from "./registration.ts";
import { findWorkflow } from "./workflows.ts";

export {
  ARCHITECTURES,
  BOOT_MODES,
  INSTALL_STATES,
  type InstallState,
  STEP_STATES,
} from "../../lifecycles/install/install.ts";
export type { InstallRecord } from "../../store/install/installs.ts";
export {
  HARDWARE_FACTS,
  type HardwareFact,
  insertInstall,
  type NewInstall,
  registerInstall,
} from "./registration.ts";

const unknownInstall = (id: string): AppError =>
  new AppError("not_found", "Node not found", {
    field: "id",
    next: `millwright node list (nothing is known of ${id})`,
  });

export async function getInstall(deps: ServiceDeps, id: string): Promise<InstallRecord> {
  const [install] = (await loadInstalls(deps.db, [id])).things;
  if (!install) throw unknownInstall(id);
  return install;
}

export interface InstallPatch {
  readonly hardware: Partial<Record<HardwareFact, string | null>>;
  /** Undefined leaves it as it is; null clears it. */
  readonly groupId?: string | null | undefined;
  readonly workflowId?: string | null | undefined;
}

/** Changes what people say of a node; what is left out stays. */
export async function patchInstall(deps: ServiceDeps, caller: Caller, id: string, patch: InstallPatch): Promise<void> {
  await deps.db.transaction(async (tx) => {
    const install = await lockInstall(tx, id);
    const facts = Object.fromEntries(
      Object.entries(patch.hardware).filter(([name, value]) => install.facts[name as HardwareFact] !== value),
    ) as JsonObject;
    if (typeof patch.groupId === "string") await holdKnownGroup(tx, patch.groupId);
    await refuseWorkflow(tx, install, patch.workflowId);
    const assigned = {
      ...(patch.groupId !== undefined && patch.groupId !== install.groupId && { group_id: patch.groupId }),
      ...(patch.workflowId !== undefined &&
        patch.workflowId !== install.workflowId && { workflow_id: patch.workflowId }),
    };
    if (Object.keys(facts).length > 0)
      await commitOrRefuse(tx, deps.stores, [{ kind: INSTALL_KIND, thing: install, facts, ...doneBy(caller) }]);
    if (Object.keys(assigned).length > 0) await recordAssignment(tx, deps, caller, install, assigned);
  });
}

/** A run installs what its plan says: another workflow in the middle would be proved in its place. */
function refuseOrdered({ facts: { orderedBy } }: Install): void {
  if (orderedBy === null) return;
  throw new AppError("failed_precondition", `run ${orderedBy} installs this node; cancel the run first`, {
    field: "workflow_id",
    next: `millwright run cancel ${orderedBy}`,
  });
}

async function refuseWorkflow(tx: Transaction, install: InstallRecord, workflowId: string | null | undefined) {
  if (typeof workflowId === "string") await findWorkflow(tx, workflowId);
  if (workflowId !== undefined && workflowId !== install.workflowId) refuseOrdered(install);
}

/** Returns the node as it is with it: a migration takes along what it has by then. */
export async function assignWorkflow(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  install: InstallRecord,
  workflowId: string | null | undefined,
): Promise<InstallRecord> {
  await refuseWorkflow(tx, install, workflowId);
  if (workflowId === undefined || workflowId === install.workflowId) return install;
  await recordAssignment(tx, deps, caller, install, { workflow_id: workflowId });
  return lockInstall(tx, install.id);
}

const recordAssignment = (
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  { id, state }: InstallRecord,
  set: JsonObject,
) =>
  recordChange(tx, storeOf(deps.stores, INSTALL_KIND), {
    id,
    type: "assigned",
    ...doneBy(caller),
    data: set,
    // A node that is approved may have waited for just that.
    set: state.name === "pending" ? { ...set, ...armedBy("assignment", nowOf(deps)) } : set,
  });

/** The node as it is under its lock. */
export async function lockInstall(tx: Transaction, id: string): Promise<InstallRecord> {
  await lockThings(tx, [installKey(id), machineKey(id)]);
  const [install] = (await loadInstalls(tx, [id])).things;
  if (!install) throw unknownInstall(id);
  return install;
}
