import type { NetInstallOrder } from "../../capabilities/net-install.ts";
import { follow } from "../../kernel/decide.ts";
import { AppError } from "../../kernel/errors.ts";
import type { Install } from "../../lifecycles/install/install.ts";
import { installLifecycle } from "../../lifecycles/install/lifecycle.ts";
import type { Workflow } from "../../lifecycles/install/workflow.ts";
import { recordChange } from "../lifecycle/changes.ts";
import type { Unit } from "../lifecycle/commit/unit.ts";
import type { CommitUnits } from "../lifecycle/commit/unit-result.ts";
import { create } from "../lifecycle/create.ts";
import type { OrderDesk, PlacedOrder } from "../lifecycle/orders.ts";
import { storeOf, type ThingStores } from "../lifecycle/things.ts";
import { findMachinesByMac, listMacReporters } from "../machine/mac-owners.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { listWorkflows } from "./workflows.ts";

const KIND = installLifecycle.kind;

/** Installs of the one inventory, as runs order them together with the announcement of their step. */
export const installOrders: OrderDesk = {
  async refusals(db, placed) {
    const reasons = new Map<PlacedOrder, string>();
    for (const each of placed) {
      const why = await whyRefused(db, orderOf(each));
      if (why !== null) reasons.set(each, why);
    }
    return reasons;
  },

  async place(tx, { stores, commit, orders }) {
    for (const each of orders) await placeOne(tx, { stores, commit, each });
  },
};

const orderOf = ({ order }: PlacedOrder): NetInstallOrder => order as NetInstallOrder;

/** Why an installation cannot be ordered as things are now; null when it can. */
export async function whyRefused(db: Queryable, order: NetInstallOrder): Promise<string | null> {
  const { machineId, workflowId, digest, mac } = order;
  const workflow = await findWorkflow(db, workflowId);
  if (!workflow) return `there is no workflow ${workflowId} any more: the image's location names it`;
  const { boot } = workflow;
  if (boot.method === "image" && boot.image_digest !== digest)
    return `workflow ${workflow.name} installs ${boot.image_digest}, but the image is ${digest}`;
  const [install] = await db.query<{ state: string }>("select state from installs where id = $1", [machineId]);
  if (install?.state === "retired") return `node ${machineId} is retired: nothing is installed on it any more`;
  if (install) return null;
  if (mac === null)
    return `machine ${machineId} has no MAC address on record, so its boot cannot be known: give it one`;
  const owner = (await findMachinesByMac(db, [mac])).get(mac);
  if (owner === machineId) return null;
  if (owner !== undefined) return `the address ${mac} of machine ${machineId} belongs to machine ${owner}`;
  const reporters = await listMacReporters(db, mac);
  return reporters.length > 0
    ? `the address ${mac} is reported by the BMCs of several machines: ${reporters.slice(0, 3).join(", ")}`
    : `the address ${mac} is no address of machine ${machineId}: neither its owner nor its BMC names it`;
}

const findWorkflow = async (db: Queryable, id: string): Promise<Workflow | undefined> =>
  (await listWorkflows(db, { ids: [id], activeOnly: true }))[0];

interface Placing {
  readonly stores: ThingStores;
  readonly commit: CommitUnits;
  readonly each: PlacedOrder;
}

async function placeOne(tx: Transaction, placing: Placing): Promise<void> {
  const { stores, each } = placing;
  const { machineId: id, runId, orderId, workflowId, stamp } = orderOf(each);
  const workflow = await findWorkflow(tx, workflowId);
  if (!workflow) throw new AppError("conflict", `workflow ${workflowId} is gone`);
  const install = (await load(tx, stores, id)) ?? (await putOnRecord(tx, placing, workflow));
  if (install.facts.orderId === orderId && install.facts.orderedBy === runId) return;
  for (const cause of waysToPending(install)) await follows(tx, placing, { cause, workflow });
  if (install.state.name === "pending") await takeOver(tx, placing);
  await recordChange(tx, storeOf(stores, KIND), {
    id,
    type: "install_ordered",
    actor: each.by,
    reason: workflow.name,
    data: { run_id: runId, workflow_id: workflow.id },
    // What an earlier boot was handed is worth nothing now, and the next one is expected, however long ago the node was approved.
    set: {
      ...{ workflow_id: workflow.id, order_stamp: stamp, report_token_hash: null },
      ...{ armed_at: (await nowIn(tx)).toISOString(), armed_by: "run" },
    },
  });
  failPoint("install-orders:placed", [{ kind: KIND }]);
}

async function load(tx: Transaction, stores: ThingStores, id: string): Promise<Install | undefined> {
  return (await storeOf(stores, KIND).load(tx, [id])).things[0] as Install | undefined;
}

async function putOnRecord(
  tx: Transaction,
  { stores, each }: Placing,
  { architecture, bootMode }: Workflow,
): Promise<Install> {
  const { machineId: id, mac } = orderOf(each);
  // How it really boots its firmware tells when it does.
  const row = { mac, arch: architecture, boot_mode: bootMode === "any" ? "uefi" : bootMode, facts: {} };
  await create(tx, storeOf(stores, KIND), { id, row, actor: each.by });
  const install = await load(tx, stores, id);
  if (!install) throw new Error(`install ${id} was created, and cannot be read`);
  return install;
}

/** The causes that lead from where it is to `pending`, by the table. */
function waysToPending({ state }: Install): readonly string[] {
  switch (state.name) {
    case "pending":
      return [];
    case "active":
      return ["repave_requested", "repave_requested"];
    case "installing":
      // An attempt of the same run that was given up: nobody else can have the machine.
      return ["run_ended", "repave_requested"];
    default:
      return ["repave_requested"];
  }
}

async function nowIn(tx: Transaction): Promise<Date> {
  const [row] = await tx.query<{ now: Date }>("select now() as now");
  if (!row) throw new Error("the database tells no time");
  return row.now;
}

const factsOf = ({ runId, orderId }: NetInstallOrder) => ({ orderedBy: runId, orderId });

async function follows(
  tx: Transaction,
  placing: Placing,
  { cause, workflow }: { readonly cause: string; readonly workflow: Workflow },
): Promise<void> {
  const order = orderOf(placing.each);
  const thing = await load(tx, placing.stores, order.machineId);
  const message = `run ${order.runId} installs ${workflow.name}`;
  const move = thing && follow(installLifecycle, thing, { owner: "other", name: cause, message });
  if (!thing || !move) throw new AppError("conflict", `install ${order.machineId} does not follow ${cause}`);
  await write(tx, placing, { kind: KIND, thing, move, facts: factsOf(order), actor: placing.each.by });
}

/** It waits already, for people or for an attempt before: from here on for this order. */
async function takeOver(tx: Transaction, placing: Placing): Promise<void> {
  const order = orderOf(placing.each);
  const thing = await load(tx, placing.stores, order.machineId);
  if (!thing) throw new AppError("conflict", `install ${order.machineId} is gone`);
  const anew = { installAttempts: 0, lastInstallError: null, attemptFailed: false, tokenShown: false, progress: null };
  await write(tx, placing, { kind: KIND, thing, facts: { ...anew, ...factsOf(order) }, actor: placing.each.by });
}

async function write(tx: Transaction, { stores, commit }: Placing, unit: Unit): Promise<void> {
  const [result] = await commit(tx, stores, [unit]);
  if (result?.type !== "committed")
    throw new AppError("conflict", `install ${unit.thing.id} could not be written: ${result?.type}`);
}
