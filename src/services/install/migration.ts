import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Assignments, InstallState } from "../../lifecycles/install/install.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { holdGroup } from "../../store/install/device-groups.ts";
import { type InstallRecord, listReplaced, loadInstalls } from "../../store/install/installs.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { list as listClaims } from "../../store/lifecycle/claims/claims.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import { applyVerb } from "../../store/lifecycle/verbs.ts";
import { machineStore } from "../../store/machine/machines.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { listRuns } from "../../store/run/runs.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { MACHINE_KIND, machineKey } from "../machine/machines.ts";
import { INSTALL_KIND } from "./key.ts";
import { insertInstall } from "./registration.ts";

const NEXT = { field: "replacement_id", next: "millwright node list" };
const refusal = (why: string): AppError => new AppError("failed_precondition", why, NEXT);

/** Where a node has nothing to lose by taking another's place. */
const SPARE: ReadonlySet<string> = new Set<InstallState>(["discovered", "pending", "installed"]);

/** The same of its machine: whatever has been said of its install, it must not be installed anew. */
const NO_SPARE: ReadonlySet<string> = new Set(["IN_SERVICE", "RMA", "RETIRED"]);

/**
 * Gives what the node is there for to its replacement, in the transaction that makes it `migrating`; the caller holds the locks of
 * both. Returns what the state carries, so that it can be returned.
 */
export async function beginMigration(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  leaving: InstallRecord,
  replacementId: string,
): Promise<JsonObject> {
  const machine = await checkReplacement(tx, leaving, replacementId);
  const known = (await loadInstalls(tx, [machine.id])).things[0];
  const coming = known ?? (await putOnRecord(tx, deps, caller, machine));
  const own = await loadMachine(tx, leaving.id);
  if (!SPARE.has(coming.state.name))
    throw refusal(
      `replacement_id: node ${coming.id} is ${coming.state.name}; a replacement must be ${[...SPARE].join(", ")}`,
    );
  const [moved, displaced] = [assignmentsOf(leaving, own), assignmentsOf(coming, machine)];
  refuseOtherOwner(displaced, moved, machine.id);
  refuseOtherSystem(leaving, coming);
  const by = { deps, caller };
  await assign(tx, by, coming.id, { ...moved, tags: union(displaced.tags, moved.tags) }, displaced);
  await assign(tx, by, leaving.id, NOTHING, moved);
  const queued = await queue(tx, deps, coming.id, leaving.id);
  return { replacement: machine.id, moved, displaced, queued };
}

/**
 * Takes back what the replacement was given, unless that has proved itself already: then the migration is over anyway. What people
 * have changed on it meanwhile stays theirs.
 */
export async function callOffMigration(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  leaving: InstallRecord,
): Promise<void> {
  const { replacement = "", moved, displaced, queued } = leaving.state;
  const [coming] = (await loadInstalls(tx, [replacement])).things;
  if (!coming || !moved || !displaced || coming.state.name === "active") return;
  const holder = await holderOf(tx, replacement);
  if (holder !== undefined)
    throw refusal(`${holder} works on the replacement ${replacement}; wait until that has ended, or cancel it`);
  const now = assignmentsOf(coming, await loadMachine(tx, replacement));
  const still = <K extends "group" | "workflow" | "customer" | "cluster">(name: K) =>
    now[name] === moved[name] ? displaced[name] : now[name];
  const back: Assignments = {
    group: still("group"),
    workflow: still("workflow"),
    customer: still("customer"),
    cluster: still("cluster"),
    tags: union(displaced.tags, without(now.tags, moved.tags)),
  };
  const own = assignmentsOf(leaving, await loadMachine(tx, leaving.id));
  const kept: Assignments = {
    group: own.group ?? moved.group,
    workflow: own.workflow ?? moved.workflow,
    customer: own.customer ?? moved.customer,
    cluster: own.cluster ?? moved.cluster,
    tags: union(own.tags, moved.tags),
  };
  const by = { deps, caller };
  await assign(tx, by, replacement, { ...back, group: await ifThere(tx, back.group) }, now);
  await assign(tx, by, leaving.id, { ...kept, group: await ifThere(tx, kept.group) }, own);
  if (queued === true && coming.state.name === "pending")
    await cause(tx, deps, replacement, "called_off", leaving.id, `${leaving.id} stays in its place`);
}

/** A group that was deleted in the meantime cannot be returned. */
async function ifThere(tx: Transaction, groupId: string | null): Promise<string | null> {
  return groupId !== null && (await holdGroup(tx, groupId, "to be in it")) ? groupId : null;
}

const NOTHING: Assignments = { group: null, workflow: null, tags: [], customer: null, cluster: null };
const union = (some: readonly string[], more: readonly string[]): string[] => [...new Set([...some, ...more])].sort();
const without = (some: readonly string[], less: readonly string[]): string[] =>
  some.filter((each) => !less.includes(each));

const assignmentsOf = (install: InstallRecord, { spec }: Machine): Assignments => ({
  group: install.groupId,
  workflow: install.workflowId,
  tags: install.tags,
  customer: spec.customerId,
  cluster: spec.targetCluster,
});

async function loadMachine(tx: Transaction, id: string): Promise<Machine> {
  const [machine] = (await machineStore.load(tx, [id])).things;
  if (!machine) throw new AppError("not_found", `replacement_id: machine ${id.slice(0, 80)} does not exist`, NEXT);
  return machine;
}

async function checkReplacement(tx: Transaction, { id }: InstallRecord, replacementId: string): Promise<Machine> {
  if (replacementId === "") throw refusal("replacement_id: is required: the machine that replaces this node");
  if (replacementId === id) throw refusal("replacement_id: a machine cannot replace itself");
  const machine = await loadMachine(tx, replacementId);
  if (NO_SPARE.has(machine.state.name))
    throw refusal(`replacement_id: machine ${replacementId} is ${machine.state.name}`);
  const holder = await holderOf(tx, replacementId);
  if (holder !== undefined) throw refusal(`replacement_id: ${holder} works on machine ${replacementId}`);
  const [other] = await listReplaced(tx, [replacementId]);
  if (other) throw refusal(`replacement_id: machine ${replacementId} already replaces node ${other.id}`);
  return machine;
}

/** Also who only waits for it. */
async function holderOf(tx: Transaction, machineId: string): Promise<string | undefined> {
  const [claim] = await listClaims(tx, [machineKey(machineId)]);
  if (claim) return `${claim.holder.kind} ${claim.holder.id}`;
  const [run] = await listRuns(tx, { machineId, activeOnly: true });
  return run && `run ${run.id}`;
}

/** Without an address it could never be seen to boot. */
async function putOnRecord(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  { id, spec, facts }: Machine,
): Promise<InstallRecord> {
  const mac = spec.macs[0] ?? facts.macs?.[0];
  if (mac === undefined)
    throw refusal(`replacement_id: machine ${id} has no MAC address on record; add one with millwright machine update`);
  await insertInstall(tx, deps, caller, { mac, arch: "x86_64", bootMode: "bios", groupId: null, facts: {} });
  const [install] = (await loadInstalls(tx, [id])).things;
  if (!install) throw refusal(`replacement_id: the address ${mac} of machine ${id} belongs to another machine`);
  return install;
}

/** One customer's machine is no spare of another's. */
function refuseOtherOwner(displaced: Assignments, moved: Assignments, machineId: string): void {
  if (displaced.customer === null || displaced.customer === moved.customer) return;
  throw refusal(`replacement_id: machine ${machineId} belongs to customer ${displaced.customer}`);
}

/** What is installed already stays: it must be what is wanted. */
function refuseOtherSystem(leaving: InstallRecord, coming: InstallRecord): void {
  const wanted = leaving.effectiveWorkflowId;
  if (coming.state.name !== "installed" || wanted === null || coming.effectiveWorkflowId === wanted) return;
  throw refusal(
    `replacement_id: node ${coming.id} is installed with workflow ${coming.effectiveWorkflowId ?? "(none)"}; a replacement needs workflow ${wanted}`,
  );
}

interface By {
  readonly deps: ServiceDeps;
  readonly caller: Caller;
}

async function assign(
  tx: Transaction,
  { deps, caller }: By,
  id: string,
  to: Assignments,
  from: Assignments,
): Promise<void> {
  const install = { group_id: to.group, workflow_id: to.workflow, tags: [...to.tags] };
  await recordChange(tx, storeOf(deps.stores, INSTALL_KIND), {
    id,
    type: "assigned",
    ...doneBy(caller),
    data: install,
    set: install,
  });
  if (to.customer === from.customer && to.cluster === from.cluster) return;
  const machine = { customer_id: to.customer, target_cluster: to.cluster };
  await recordChange(tx, storeOf(deps.stores, MACHINE_KIND), {
    id,
    type: "spec_changed",
    ...doneBy(caller),
    data: machine,
    set: machine,
  });
}

/** A replacement that nobody has approved yet is, by having been chosen; without a workflow there is nothing to install. */
async function queue(tx: Transaction, deps: ServiceDeps, id: string, leaving: string): Promise<boolean> {
  const [coming] = (await loadInstalls(tx, [id])).things;
  if (coming?.state.name !== "discovered" || coming.effectiveWorkflowId === null) return false;
  await cause(tx, deps, id, "replaces", leaving, `takes the place of ${leaving}`);
  return true;
}

const cause = (tx: Transaction, deps: ServiceDeps, id: string, name: string, by: string, message: string) =>
  applyVerb(tx, deps.stores, { kind: INSTALL_KIND, id, owner: "other", name, actor: `install ${by}`, message });
