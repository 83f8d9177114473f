import { AppError, changedByAnother } from "../../kernel/errors.ts";
import { type JsonObject, rowsFrom } from "../../kernel/lifecycle.ts";
import {
  INSTALL_STATES,
  type Install,
  type InstallState,
  MAX_INSTALL_ATTEMPTS,
} from "../../lifecycles/install/install.ts";
import { installLifecycle } from "../../lifecycles/install/lifecycle.ts";
import { type InstallRecord, loadInstalls } from "../../store/install/installs.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { list as listClaims } from "../../store/lifecycle/claims/claims.ts";
import { commitOrRefuse } from "../../store/lifecycle/commit/commit-or-refuse.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import { applyVerb } from "../../store/lifecycle/verbs.ts";
import { retryOnConflict, type Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { machineKey } from "../machine/machines.ts";
import { armedBy } from "./boot/arming.ts";
import { holdKnownGroup } from "./device-groups.ts";
import { INSTALL_KIND, installKey } from "./key.ts";
import { beginMigration, callOffMigration } from "./migration.ts";
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
async function assignWorkflow(
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

export interface StateChange {
  readonly state: InstallState;
  readonly comment: string;
  /** Lifts the limit of attempts and resets the counters; it never makes an illegal transition legal. */
  readonly force: boolean;
  /** With `migrating`: the machine that takes its place. */
  readonly replacementId?: string | undefined;
  /** Assigned with it, or not at all. Undefined leaves it as it is; null clears it. */
  readonly workflowId?: string | null | undefined;
}

/** Takes a node to a state, if an operator may: by the table's own rows. */
export async function changeInstallState(
  deps: ServiceDeps,
  caller: Caller,
  id: string,
  change: StateChange,
): Promise<InstallRecord> {
  await retryOnConflict(() =>
    deps.db.transaction(async (tx) => {
      const install = await lockWithReplacement(tx, id, change);
      await applyStateChange(tx, deps, caller, install, change);
    }),
  );
  return getInstall(deps, id);
}

/**
 * The node under its lock. Both nodes of a migration are locked at once: two that are each to replace the other must not wait for
 * each other.
 */
async function lockWithReplacement(
  tx: Transaction,
  id: string,
  { state, replacementId }: StateChange,
): Promise<InstallRecord> {
  const [before] = (await loadInstalls(tx, [id])).things;
  const other = state === "migrating" ? replacementId : before?.state.replacement;
  await lockThings(
    tx,
    [id, ...(other === undefined ? [] : [other])].flatMap((each) => [installKey(each), machineKey(each)]),
  );
  const install = await lockInstall(tx, id);
  const { replacement = other } = install.state;
  // A migration that began in between concerns a node that is not locked.
  if (state !== "migrating" && replacement !== other) throw changedByAnother(`node ${id}`);
  return install;
}

async function applyStateChange(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  before: InstallRecord,
  { state, comment, force, replacementId, workflowId }: StateChange,
): Promise<void> {
  refuseExhausted(before, state, force);
  const verb = verbTo(before, state);
  const install = await assignWorkflow(tx, deps, caller, before, workflowId);
  if (LEAVES_THE_RUN.has(state)) await refuseHeld(tx, install);
  if (state === "deprovisioning" && deps.canErase !== true) throw nothingErases();
  if (install.state.name === "migrating" && state === "active") await callOffMigration(tx, deps, caller, install);
  const migration = state === "migrating" ? await beginMigration(tx, deps, caller, install, replacementId ?? "") : {};
  await applyVerb(tx, deps.stores, {
    kind: INSTALL_KIND,
    id: install.id,
    owner: "caller",
    name: verb,
    ...doneBy(caller),
    ...(comment !== "" && { message: comment }),
    data: {
      now: nowOf(deps).toISOString(),
      ...migration,
    },
    ...(force && { facts: { installAttempts: 0, lastInstallError: null, attemptFailed: false } }),
  });
}

/** Three failures are enough: that it is to be tried again somebody must say on purpose. */
function refuseExhausted({ state, facts }: Install, target: InstallState, force: boolean): void {
  if (force || state.name !== "install_failed" || target !== "pending") return;
  if (facts.installAttempts < MAX_INSTALL_ATTEMPTS) return;
  throw new AppError(
    "failed_precondition",
    `Max install attempts (${MAX_INSTALL_ATTEMPTS}) exceeded: reset the count with force: true (--force), and choose another workflow if this one cannot work`,
    { field: "force", next: "millwright node retry <id> --workflow <other> --force" },
  );
}

/** States that an operator can take a node to, in the order of the table. */
function reachableBy(install: Install): readonly InstallState[] {
  const state = install.state.name as InstallState;
  const targets = rowsFrom(installLifecycle, state)
    .filter(([, { owner }]) => owner === "caller")
    .map(([, , to]) => to);
  return INSTALL_STATES.filter((each) => targets.includes(each));
}

function verbTo(install: Install, target: InstallState): string {
  const state = install.state.name as InstallState;
  const row = rowsFrom(installLifecycle, state).find(
    ([, { owner, name }, to]) => owner === "caller" && to === target && name !== CONFIRM_ERASED,
  );
  if (row) return row[1].name;
  throw new AppError(
    "failed_precondition",
    `Cannot transition from ${state} to ${target}. Valid transitions: ${reachableBy(install).join(", ") || "none"}`,
    { field: "state" },
  );
}

/** Accepted, it would wait for ever. */
const nothingErases = (): AppError =>
  new AppError(
    "failed_precondition",
    "No erase environment is configured: set install.erase.kernel and install.erase.initrd first",
    { field: "state", next: "millwright netboot environment --help" },
  );

/** Where nothing of what a run does on the machine makes sense any more. */
const LEAVES_THE_RUN: ReadonlySet<string> = new Set<InstallState>(["retired", "deprovisioning", "migrating"]);

/** A job that works on the machine would go on with one that is no more. */
async function refuseHeld(tx: Transaction, { id }: Install): Promise<void> {
  const holder = (await listClaims(tx, [machineKey(id)])).find(({ grantedAt }) => grantedAt !== null)?.holder;
  if (!holder || holder.kind === INSTALL_KIND) return;
  throw new AppError(
    "failed_precondition",
    `${holder.kind} ${holder.id} works on machine ${id}; wait until that has ended, or cancel it`,
    {
      field: "state",
      next: holder.kind === "run" ? `millwright run cancel ${holder.id}` : "",
    },
  );
}

/** Whoever takes a node out says nothing of its data: that it is gone has a verb of its own. */
export const CONFIRM_ERASED = "confirm_erased";

export interface StateChangeResult {
  readonly id: string;
  /** Absent: it was done. */
  readonly error?: string;
}

/** Each node on its own: what one of them refuses does not keep the others back. Ids that nothing has are left out. */
export async function changeManyInstallStates(
  deps: ServiceDeps,
  caller: Caller,
  ids: readonly string[],
  change: Omit<StateChange, "force">,
): Promise<readonly StateChangeResult[]> {
  const results: StateChangeResult[] = [];
  for (const id of new Set(ids)) {
    try {
      await changeInstallState(deps, caller, id, { ...change, force: false });
      results.push({ id });
    } catch (error) {
      if (!(error instanceof AppError) || error.kind === "unavailable") throw error;
      if (error.kind !== "not_found") results.push({ id, error: error.message });
    }
  }
  return results;
}
