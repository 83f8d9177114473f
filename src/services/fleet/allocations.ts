import { createHash } from "node:crypto";
import { AppError, wrongField } from "../../kernel/errors.ts";
import { isPrintable } from "../../kernel/printable.ts";
import type { FleetAllocation } from "../../lifecycles/fleet-allocation/fleet-allocation.ts";
import { fleetAllocationLifecycle } from "../../lifecycles/fleet-allocation/lifecycle.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import { findHeartbeats } from "../../store/fleet/agents.ts";
import { findAllocationOfRequest, listAllocations } from "../../store/fleet/allocations.ts";
import { create } from "../../store/lifecycle/create.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import { applyVerb } from "../../store/lifecycle/verbs.ts";
import { listMachines } from "../../store/machine/machines.ts";
import type { Queryable, Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { actorOf, doneBy } from "../call/initiator.ts";
import { checkPageSize, cutPage, type Page, parsePageToken } from "../call/paging.ts";
import { refuseToUse } from "../device/held.ts";
import { rackKeys } from "../device/racks.ts";
import { machineKey } from "../machine/machines.ts";
import { findNode } from "./find-node.ts";

export type { FleetAllocation } from "../../lifecycles/fleet-allocation/fleet-allocation.ts";

const { kind } = fleetAllocationLifecycle;
export const ALLOCATION_STATES = Object.keys(
  fleetAllocationLifecycle.states,
) as (keyof typeof fleetAllocationLifecycle.states)[];
const LONGEST = 253;

export interface RequestAllocation {
  /** Its id, or its host name. */
  readonly node: string;
  readonly tenant: string;
  /** The same request again gets the same allocation. */
  readonly requestId: string;
}

/** Asks for the use of a node. Only a node that is active, and not reported as unhealthy, is given away. */
export async function requestAllocation(
  deps: ServiceDeps,
  caller: Caller,
  input: RequestAllocation,
): Promise<FleetAllocation> {
  const tenant = checkText(input.tenant, "tenant");
  const requestId = checkText(input.requestId, "request_id");
  const { id: node, machineId } = await findNode(deps.db, input.node);
  const id = idOf(node, requestId);
  const rackId = await rackOf(deps.db, machineId);
  return deps.db.transaction(async (tx) => {
    // Whoever drains the node holds its lock as well: none is given away behind the one who counts its allocations.
    await lockThings(tx, [
      { kind: fleetNodeLifecycle.kind, id: node },
      { kind, id },
      machineKey(machineId),
      ...rackKeys([rackId]),
    ]);
    const made = await findAllocationOfRequest(tx, { node, requestId });
    if (made) return checkSame(made, tenant);
    if ((await rackOf(tx, machineId)) !== rackId)
      throw new AppError("conflict", `machine ${machineId} was moved to another rack at the same moment; call again`);
    // A rack that works on a switch relies on nobody using its machines until that has ended.
    await refuseToUse(tx, deps, { machine: machineKey(machineId), rackId }, { action: "assigned", field: "node" });
    const { state, hostname } = await findNode(tx, node);
    if (state.name !== "active")
      throw new AppError(
        "failed_precondition",
        `fleet node ${hostname} is ${state.name}: only an active one is allocated`,
        {
          field: "node",
          next: `millwright fleet show ${node}`,
        },
      );
    await refuseUnhealthy(tx, { node, hostname });
    const row = { node, tenant, request_id: requestId, created_by: actorOf(caller) };
    await create(tx, storeOf(deps.stores, kind), { id, row, ...doneBy(caller) });
    return getAllocation({ db: tx }, id);
  });
}

/** Active is healthy and schedulable: what its agent said last counts, until the agent says otherwise. */
async function refuseUnhealthy(
  tx: Transaction,
  { node, hostname }: { readonly node: string; readonly hostname: string },
): Promise<void> {
  const heard = (await findHeartbeats(tx, [node])).get(node);
  if (heard?.health !== "unhealthy") return;
  const said = heard.message === "" ? "" : `: ${heard.message}`;
  throw new AppError(
    "failed_precondition",
    `fleet node ${hostname} is active, but its agent reports that it is unhealthy${said}; only a healthy node is allocated`,
    { field: "node", next: `millwright fleet show ${node}` },
  );
}

async function rackOf(db: Queryable, machineId: string): Promise<string | null> {
  const [machine] = await listMachines(db, { ids: [machineId] });
  return machine?.spec.rack ?? null;
}

export async function getAllocation({ db }: { readonly db: Queryable }, id: string): Promise<FleetAllocation> {
  const [allocation] = await listAllocations(db, { ids: [id] });
  if (!allocation)
    throw new AppError("not_found", `fleet allocation ${id.slice(0, 80)} does not exist`, {
      field: "id",
      next: "millwright fleet allocation list",
    });
  return allocation;
}

export interface AllocationFilter {
  /** A node's id or host name; empty: of all. */
  readonly node: string;
  readonly state: string;
  readonly tenant: string;
  readonly pageSize: number;
  readonly pageToken: string;
}

/** In the order of their ids. */
export async function pageAllocations(deps: ServiceDeps, filter: AllocationFilter): Promise<Page<FleetAllocation>> {
  const { state, tenant } = filter;
  if (state !== "" && !ALLOCATION_STATES.some((known) => known === state))
    throw wrongField("state", `must be one of ${ALLOCATION_STATES.join(", ")}`);
  const size = checkPageSize(filter.pageSize);
  const query = { of: "fleet_allocations", node: filter.node, state, tenant };
  const [after] = parsePageToken(deps.secrets, filter.pageToken, query, 1) ?? [];
  const db = deps.lists ?? deps.db;
  const node = filter.node === "" ? undefined : await findNode(db, filter.node);
  const rows = await listAllocations(db, {
    ...(node && { node: node.id }),
    ...(state !== "" && { state }),
    ...(tenant !== "" && { tenant }),
    after,
    limit: size + 1,
  });
  return cutPage(deps.secrets, rows, size, query, ({ id }) => [id]);
}

/** Ends the use of a node. One that is being released, or is released, is left as it is. */
export async function releaseAllocation(
  deps: ServiceDeps,
  caller: Caller,
  { id, force }: { readonly id: string; readonly force: boolean },
): Promise<FleetAllocation> {
  await getAllocation(deps, id);
  return deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind, id }]);
    const { state } = await getAllocation({ db: tx }, id);
    if (state.name !== "releasing" && state.name !== "released") {
      const name = force ? "force_release" : "release";
      await applyVerb(tx, deps.stores, { kind, id, owner: "caller", name, ...doneBy(caller) });
    }
    return getAllocation({ db: tx }, id);
  });
}

/** Why it is as it is, for people; empty where there is nothing to say. */
export const messageOfAllocation = ({ cause }: FleetAllocation["state"], outcome: FleetAllocation["outcome"]): string =>
  cause ?? outcome?.reason ?? "";

function checkSame(made: FleetAllocation, tenant: string): FleetAllocation {
  if (made.tenant === tenant) return made;
  throw new AppError(
    "already_exists",
    `the request was made for tenant ${made.tenant} before: give another request_id`,
    {
      field: "request_id",
    },
  );
}

function checkText(text: string, field: string): string {
  if (text !== "" && text.length <= LONGEST && isPrintable(text)) return text;
  throw wrongField(field, `must be printable, with 1 to ${LONGEST} characters`);
}

/** It follows from the request, so that two of the same cannot make two. */
const idOf = (node: string, requestId: string): string =>
  `fa-${createHash("sha256")
    .update(JSON.stringify([node, requestId]))
    .digest("hex")
    .slice(0, 20)}`;
