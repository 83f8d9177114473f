import type { FleetAllocation } from "../../lifecycles/fleet-allocation/fleet-allocation.ts";
import { fleetAllocationLifecycle } from "../../lifecycles/fleet-allocation/lifecycle.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import { parseRows, type ThingStore } from "../lifecycle/things.ts";
import type { Queryable } from "../postgres/database.ts";

interface AllocationRow extends StateColumns {
  node: string;
  hostname: string | null;
  tenant: string;
  request_id: string;
  created_by: string;
  created_at: Date;
}

const parseAllocation = (row: AllocationRow): FleetAllocation => ({
  ...parseStateColumns(row),
  id: row.id,
  node: row.node,
  hostname: row.hostname ?? "",
  tenant: row.tenant,
  createdBy: row.created_by,
  createdAt: row.created_at,
  facts: {},
});

const SELECT = `select ${STATE_COLUMNS}, t.node, t.tenant, t.request_id, t.created_by, t.created_at, n.hostname
  from fleet_allocations t left join fleet_nodes n on n.id = t.node`;

export const fleetAllocationStore: ThingStore<FleetAllocation> = {
  lifecycle: fleetAllocationLifecycle,
  table: "fleet_allocations",
  requests: {},
  related: {
    node: {
      of: ({ node }) => ({ kind: fleetNodeLifecycle.kind, id: node }),
      loadsState: true,
      awaits: {
        kind: fleetNodeLifecycle.kind,
        // It comes into use, or nobody gets it any more.
        states: ["active", "quarantined", "draining", "deleted"],
        async waiting(db, nodes) {
          const rows = await db.query<{ id: string }>(
            `select id from fleet_allocations where node = any($1) and state in ('requested', 'provisioning')`,
            [nodes.map(({ id }) => id)],
          );
          return rows.map(({ id }) => id);
        },
      },
    },
  },
  restsIdle: ({ state }) => state.name === "active" || state.name === "release_failed",
  async load(db, ids) {
    const text = `${SELECT} where t.id = any($1)`;
    const rows = await db.query<AllocationRow>({ name: "fleet_allocations.load", text, values: [ids] });
    return parseRows(rows, parseAllocation);
  },
};

export interface AllocationQuery {
  readonly ids?: readonly string[];
  readonly node?: string;
  readonly state?: string;
  readonly tenant?: string;
  /** Those behind this id. */
  readonly after?: string | undefined;
  readonly limit?: number;
}

/** In the order of their ids. */
export async function listAllocations(db: Queryable, query: AllocationQuery): Promise<readonly FleetAllocation[]> {
  const { ids = null, node = null, state = null, tenant = null, after = null, limit = null } = query;
  const rows = await db.query<AllocationRow>(
    `${SELECT}
      where ($1::text[] is null or t.id = any($1)) and ($2::text is null or t.node = $2)
        and ($3::text is null or t.state = $3) and ($4::text is null or t.tenant = $4)
        and ($5::text is null or t.id > $5) order by t.id limit $6`,
    [ids, node, state, tenant, after, limit],
  );
  return parseRows(rows, parseAllocation).things;
}

/** The one that this request made on the node. */
export async function findAllocationOfRequest(
  db: Queryable,
  { node, requestId }: { readonly node: string; readonly requestId: string },
): Promise<FleetAllocation | undefined> {
  const text = `${SELECT} where t.node = $1 and t.request_id = $2`;
  return parseRows(await db.query<AllocationRow>(text, [node, requestId]), parseAllocation).things[0];
}

/** Those of a node that somebody uses or is about to, in the order of their ids. */
export async function listOpenAllocations(db: Queryable, node: string): Promise<readonly FleetAllocation[]> {
  const text = `${SELECT} where t.node = $1 and t.state not in ('released', 'failed') order by t.id`;
  return parseRows(await db.query<AllocationRow>(text, [node]), parseAllocation).things;
}
