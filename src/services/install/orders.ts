import type { NetInstall, NetInstallOrder, NetInstallSeen } from "../../capabilities/net-install.ts";
import { AppError, StepFailure } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { MAX_INSTALL_ATTEMPTS } from "../../lifecycles/install/install.ts";
import type { Workflow } from "../../lifecycles/install/workflow.ts";
import { type InstallRecord, loadInstalls } from "../../store/install/installs.ts";
import { listWorkflows } from "../../store/install/workflows.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { list as listClaims } from "../../store/lifecycle/claims.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import { commitUnits } from "../../store/lifecycle/transitions.ts";
import { applyVerb } from "../../store/lifecycle/verbs.ts";
import { machineStore } from "../../store/machine/machines.ts";
import { retryOnConflict, type Transaction } from "../../store/postgres/database.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { machineKey } from "../machine/machines.ts";
import { INSTALL_KIND, installKey } from "./key.ts";
import { insertInstall } from "./registration.ts";
import { hashToken } from "./report-token.ts";

type Deps = Pick<ServiceDeps, "db" | "stores">;

/**
 * Installs of the one inventory, ordered by runs. Each order is one transaction, and the same one again changes nothing: a run that
 * died in the middle of its step just asks again.
 */
export const openInstallOrders = (deps: Deps): NetInstall => ({
  order: (order) => asStep(() => retryOnConflict(() => deps.db.transaction((tx) => place(tx, deps, order)))),
  read: (order) => asStep(async () => seenOf((await loadInstalls(deps.db, [order.machineId])).things[0], order)),
});

/** A refusal is an answer that the step fails with; a database that is away is none. */
async function asStep<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof AppError) || error.kind === "unavailable" || error.kind === "deadline_exceeded") throw error;
    throw new StepFailure(error.kind === "conflict" ? "retry" : "fail", error.message, { cause: error });
  }
}

const refusal = (why: string): AppError => new AppError("failed_precondition", why);

async function place(tx: Transaction, deps: Deps, order: NetInstallOrder): Promise<void> {
  const { machineId: id, runId } = order;
  await lockThings(tx, [installKey(id), machineKey(id)]);
  await refuseUnlessHeld(tx, order);
  const workflow = await findOrdered(tx, order);
  const install = (await loadInstalls(tx, [id])).things[0] ?? (await putOnRecord(tx, deps, order, workflow));
  if (isPlaced(install, order)) return;
  const verbs = wayToPending(install);
  const facts = { orderedBy: runId, orderId: hashToken(order.token) };
  const actor = `run ${runId}`;
  for (const name of verbs)
    await applyVerb(tx, deps.stores, {
      kind: INSTALL_KIND,
      id,
      owner: "other",
      name,
      actor,
      message: `run ${runId} installs ${workflow.name}`,
      facts,
    });
  if (verbs.length === 0) await takeOver(tx, deps, install, { facts, actor });
  await recordChange(tx, storeOf(deps.stores, INSTALL_KIND), {
    id,
    type: "install_ordered",
    actor,
    reason: workflow.name,
    data: { run_id: runId, workflow_id: workflow.id },
    // What an earlier boot was handed is worth nothing now.
    set: { workflow_id: workflow.id, order_stamp: order.stamp, report_token_hash: null },
  });
}

/** Who was thought dead and acts late must not install what another is working on by now. */
async function refuseUnlessHeld(tx: Transaction, { machineId, runId }: NetInstallOrder): Promise<void> {
  const claims = await listClaims(tx, [machineKey(machineId)]);
  const holder = claims.find(({ grantedAt }) => grantedAt !== null)?.holder;
  if (holder?.kind === "run" && holder.id === runId) return;
  throw refusal(`run ${runId} does not hold machine ${machineId} any more`);
}

async function findOrdered(tx: Transaction, { workflowId, digest }: NetInstallOrder): Promise<Workflow> {
  const [workflow] = await listWorkflows(tx, { ids: [workflowId], activeOnly: true });
  if (!workflow) throw refusal(`there is no workflow ${workflowId} any more: the image's location names it`);
  const { boot } = workflow;
  if (boot.method === "image" && boot.image_digest !== digest)
    throw refusal(`workflow ${workflow.name} installs ${boot.image_digest}, but the image is ${digest}`);
  return workflow;
}

async function putOnRecord(
  tx: Transaction,
  deps: Deps,
  { machineId, runId }: NetInstallOrder,
  { architecture, bootMode }: Workflow,
): Promise<InstallRecord> {
  const [machine] = (await machineStore.load(tx, [machineId])).things;
  const mac = machine?.spec.macs[0] ?? machine?.facts.macs?.[0];
  if (mac === undefined)
    throw refusal(`machine ${machineId} has no MAC address on record, so its boot cannot be known: give it one`);
  const caller = { name: `run ${runId}`, roles: [], address: null };
  // How it really boots its firmware tells when it does.
  const boots = bootMode === "any" ? "uefi" : bootMode;
  await insertInstall(tx, deps, caller, { mac, arch: architecture, bootMode: boots, groupId: null, facts: {} });
  const [install] = (await loadInstalls(tx, [machineId])).things;
  if (!install) throw refusal(`the address ${mac} of machine ${machineId} belongs to another machine`);
  return install;
}

const isPlaced = ({ facts }: InstallRecord, { token, runId }: NetInstallOrder): boolean =>
  facts.orderId === hashToken(token) && facts.orderedBy === runId;

/** The causes that lead from where it is to `pending`, by the table. */
function wayToPending({ id, state }: InstallRecord): readonly string[] {
  switch (state.name) {
    case "pending":
      return [];
    case "active":
      return ["repave_requested", "repave_requested"];
    case "installing":
      // An attempt of the same run that was given up: nobody else can have the machine.
      return ["run_ended", "repave_requested"];
    case "retired":
      throw refusal(`node ${id} is retired: nothing is installed on it any more`);
    default:
      return ["repave_requested"];
  }
}

/** It waits already, for people or for an attempt before: from here on for this order. */
async function takeOver(
  tx: Transaction,
  { stores }: Deps,
  thing: InstallRecord,
  { facts, actor }: { readonly facts: JsonObject; readonly actor: string },
): Promise<void> {
  const anew = { installAttempts: 0, lastInstallError: null, attemptFailed: false, tokenShown: false, progress: null };
  await commitUnits(tx, stores, [{ kind: INSTALL_KIND, thing, facts: { ...anew, ...facts }, actor }]);
}

function seenOf(install: InstallRecord | undefined, { token, runId }: NetInstallOrder): NetInstallSeen {
  const absent = { state: "absent", message: "", tokenShown: false, awaitsProof: false } as const;
  if (!install || install.facts.orderId !== hashToken(token)) return absent;
  const { state, facts, reportTokenHash } = install;
  const base = { tokenShown: facts.tokenShown, awaitsProof: state.name === "installed" };
  const isOurs = facts.orderedBy === runId;
  switch (state.name) {
    case "pending":
      // What people queued again is theirs, until it is ordered anew.
      if (!isOurs) return absent;
      if (reportTokenHash === null) return { ...base, state: "ordered", message: "waits for the machine to boot" };
      return { ...base, state: "begun", message: "its install script was handed out; nothing was reported yet" };
    case "installing":
      return isOurs ? { ...base, state: "installing", message: progressOf(install) } : absent;
    case "installed":
    case "active":
      return { ...base, state: "installed", message: "installed" };
    case "install_failed":
      return { ...base, state: "failed", message: `the installation failed: ${whyFailed(install)}` };
    default:
      return { ...base, state: "failed", message: `the node is ${state.name} by now` };
  }
}

const whyFailed = ({ facts }: InstallRecord): string => facts.lastInstallError ?? "no reason given";

function progressOf(install: InstallRecord): string {
  const { installAttempts, attemptFailed, progress } = install.facts;
  if (attemptFailed)
    return `attempt ${installAttempts} of ${MAX_INSTALL_ATTEMPTS} failed (${whyFailed(install)}); its next boot is the next one`;
  return `installing, ${progress ?? 0} % of attempt ${installAttempts + 1} of ${MAX_INSTALL_ATTEMPTS}`;
}
