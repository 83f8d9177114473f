import { AppError, changedByAnother } from "../../../kernel/errors.ts";
import { rowsFrom } from "../../../kernel/lifecycle.ts";
import {
  INSTALL_STATES,
  type Install,
  type InstallState,
  MAX_INSTALL_ATTEMPTS,
} from "../../../lifecycles/install/install.ts";
import { installLifecycle } from "../../../lifecycles/install/lifecycle.ts";
import { type InstallRecord, loadInstalls } from "../../../store/install/installs.ts";
import { list as listClaims } from "../../../store/lifecycle/claims/claims.ts";
import { lockThings } from "../../../store/lifecycle/locks.ts";
import { applyVerb } from "../../../store/lifecycle/verbs.ts";
import { retryOnConflict, type Transaction } from "../../../store/postgres/database.ts";
import type { Caller } from "../../call/caller.ts";
import { nowOf, type ServiceDeps } from "../../call/deps.ts";
import { doneBy } from "../../call/initiator.ts";
import { machineKey } from "../../machine/machines.ts";
import { assignWorkflow, getInstall, lockInstall } from "../installs.ts";
import { CONFIRM_ERASED, INSTALL_KIND, installKey } from "../key.ts";
import { beginMigration, callOffMigration } from "../migration.ts";
import { checkComment } from "./comment.ts";

export interface StateChange {
  readonly state: InstallState;
  /** Absent: whatever state it is in. */
  readonly from?: InstallState | undefined;
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
  { state, from, comment, force, replacementId, workflowId }: StateChange,
): Promise<void> {
  if (from !== undefined && before.state.name !== from) throw inAnotherState(before, from);
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

/** Who approves a node means one that was discovered: none of these verbs does another's work. */
const inAnotherState = ({ id, state }: Install, from: InstallState): AppError =>
  new AppError("failed_precondition", `node ${id} is ${state.name}; this is for one that is ${from}`, {
    field: "from",
    next: `millwright explain node ${id}`,
  });

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

/** A change of state as callers of the API spell it: empty texts are left out. */
export interface WantedState {
  readonly state: string;
  readonly from: string;
  readonly comment: string;
  readonly workflowId: string;
  readonly force: boolean;
  readonly replacementId: string;
}

/** The same, for what was not checked yet. */
export async function changeNodeState(
  deps: ServiceDeps,
  caller: Caller,
  id: string,
  { state, from, comment, workflowId, force, replacementId }: WantedState,
): Promise<InstallRecord> {
  checkComment(comment);
  if (workflowId !== "" && state !== "pending")
    throw new AppError("invalid_argument", "workflow_id: is assigned on the way to pending only", {
      field: "workflow_id",
    });
  return changeInstallState(deps, caller, id, {
    state: knownState("state", state),
    ...(from !== "" && { from: knownState("from", from) }),
    ...(workflowId !== "" && { workflowId }),
    ...(replacementId !== "" && { replacementId }),
    ...{ comment, force },
  });
}

function knownState(field: string, word: string): InstallState {
  const state = INSTALL_STATES.find((each) => each === word);
  if (state === undefined)
    throw new AppError("invalid_argument", `${field}: must be one of ${INSTALL_STATES.join(", ")}`, { field });
  return state;
}
