import {
  type Enrollment,
  FLEET_MODES,
  type FleetMode,
  type FleetNode,
  type FleetNodeFacts,
} from "../../lifecycles/fleet-node/fleet-node.ts";
import { hasEnrolled } from "../../lifecycles/fleet-node/handlers.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import { parseRows, type ThingStore } from "../lifecycle/things.ts";
import { placeOfItsMachine } from "../machine/machine-place.ts";
import type { Queryable } from "../postgres/database.ts";
import { isNumber, isText, oneOf, orNull, readerOf, shapeOf } from "../postgres/stored-json.ts";

/** A node with what only people need. */
export interface FleetNodeRecord extends FleetNode {
  readonly createdAt: Date;
  readonly createdBy: string;
}

export interface FleetNodeRow extends StateColumns {
  facts: unknown;
  site: string;
  profile: string;
  sku: string;
  hostname: string;
  ipmi_ip: string | null;
  mode: string;
  machine_id: string;
  created_at: Date;
  created_by: string;
}

const isEnrollment = shapeOf<Enrollment>({
  issue: isNumber,
  tokenHash: isText,
  expiresAt: isText,
  consumedAt: orNull(isText),
});

const readFleetNodeFacts = readerOf<FleetNodeFacts>({
  systemId: [orNull(isText), null],
  quarantineReason: [orNull(isText), null],
  enrollment: [orNull(isEnrollment), null],
  deployOrderedAt: [orNull(isText), null],
});

const isMode = oneOf<FleetMode>(FLEET_MODES);

export const FLEET_NODE_COLUMNS = `${STATE_COLUMNS}, t.site, t.profile, t.sku, t.hostname, t.ipmi_ip, t.mode, t.machine_id, t.created_at, t.created_by`;

export function parseFleetNode(row: FleetNodeRow): FleetNodeRecord {
  const { id, site, profile, sku, hostname, ipmi_ip: ipmiIp, mode, machine_id: machineId } = row;
  if (!isMode(mode)) throw new TypeError(`mode cannot be ${JSON.stringify(mode)}`);
  return {
    ...parseStateColumns(row),
    ...{ id, site, profile, sku, hostname, ipmiIp, mode, machineId },
    facts: readFleetNodeFacts(row.facts),
    ...{ createdAt: row.created_at, createdBy: row.created_by },
  };
}

export const fleetNodeStore: ThingStore<FleetNode> = {
  lifecycle: fleetNodeLifecycle,
  table: "fleet_nodes",
  place: placeOfItsMachine("fleet_nodes", "machine_id"),
  requests: {},
  related: {
    // What may be done with a machine depends on its node.
    machine: { of: ({ machineId }) => ({ kind: machineLifecycle.kind, id: machineId }) },
  },
  restsIdle: (node) => !hasEnrolled(node),
  async load(db, ids) {
    const text = `select ${FLEET_NODE_COLUMNS} from fleet_nodes t where t.id = any($1)`;
    return parseRows(await db.query<FleetNodeRow>({ name: "fleet_nodes.load", text, values: [ids] }), parseFleetNode);
  },
};

/** Of what a node is told apart by, as far as it is known. */
export interface NodeIdentity {
  readonly site: string;
  readonly hostname: string;
  readonly ipmiIp: string | null;
  readonly machineId: string | null;
}

/** The live nodes that have something of the identity. */
export async function findTwins(db: Queryable, identity: NodeIdentity): Promise<FleetNodeRecord[]> {
  const { site, hostname, ipmiIp, machineId } = identity;
  const rows = await db.query<FleetNodeRow>(
    `select ${FLEET_NODE_COLUMNS} from fleet_nodes t
      where t.state <> 'deleted' and ((t.site = $1 and t.hostname = $2) or t.ipmi_ip = $3 or t.machine_id = $4) order by t.id`,
    [site, hostname, ipmiIp, machineId],
  );
  return rows.map(parseFleetNode);
}

/** The node that the request made, and what was asked then. */
export async function findByRequest(
  db: Queryable,
  requestId: string,
): Promise<{ readonly id: string; readonly fingerprint: string } | undefined> {
  const text = "select id, fingerprint from fleet_nodes where request_id = $1";
  return (await db.query<{ id: string; fingerprint: string }>(text, [requestId]))[0];
}

export interface NodeQuery {
  readonly ids?: readonly string[];
  /** The live ones of this name, at whatever sites. */
  readonly hostname?: string;
  readonly site?: string;
}

/** Removed nodes are found by their ids alone. */
export async function listNodes(db: Queryable, { ids, hostname, site }: NodeQuery): Promise<FleetNodeRecord[]> {
  const rows = await db.query<FleetNodeRow>({
    hot: true,
    text: `select ${FLEET_NODE_COLUMNS} from fleet_nodes t
      where ($1::text[] is null or t.id = any($1)) and ($2::text is null or t.hostname = $2) and ($3::text is null or t.site = $3)
        and ($1::text[] is not null or t.state <> 'deleted')
      order by t.id`,
    values: [ids ?? null, hostname ?? null, site ?? null],
  });
  return rows.map(parseFleetNode);
}

/** A node as far as its machine has to do with it. */
export type LiveNode = { readonly id: string; readonly hostname: string; readonly state: string };

/** The live nodes that these machines are, by the ids of the machines. */
export async function findLiveNodes(
  db: Queryable,
  machineIds: readonly string[],
): Promise<ReadonlyMap<string, LiveNode>> {
  const rows = await db.query<LiveNode & { readonly machine_id: string }>({
    hot: true,
    text: `select id, hostname, state, machine_id from fleet_nodes where machine_id = any($1) and state <> 'deleted'`,
    values: [machineIds],
  });
  return new Map(rows.map(({ machine_id, ...node }) => [machine_id, node]));
}

/** The live node of the site that is bound to this machine of MAAS, but for the one that asks. */
export async function findOtherOnSystem(
  db: Queryable,
  { site, systemId, exceptId }: { readonly site: string; readonly systemId: string; readonly exceptId: string },
): Promise<string | undefined> {
  const [other] = await db.query<{ hostname: string }>(
    `select hostname from fleet_nodes
      where site = $1 and facts ->> 'systemId' = $2 and state <> 'deleted' and id <> $3 limit 1`,
    [site, systemId, exceptId],
  );
  return other?.hostname;
}

/** The host names of live nodes, by what they hold. */
export interface HoldersOf {
  readonly bySystemId: ReadonlyMap<string, string>;
  readonly byIpmiIp: ReadonlyMap<string, string>;
}

/** Whose these machines of a site's MAAS are, and whose these management controllers, which are one node's at whatever site. */
export async function findHoldersOf(
  db: Queryable,
  {
    site,
    systemIds,
    ips,
  }: { readonly site: string; readonly systemIds: readonly string[]; readonly ips: readonly string[] },
): Promise<HoldersOf> {
  const rows = await db.query<{ hostname: string; system_id: string | null; ipmi_ip: string | null }>(
    `select hostname, case when site = $1 then facts ->> 'systemId' end as system_id, ipmi_ip from fleet_nodes
      where state <> 'deleted' and ((site = $1 and facts ->> 'systemId' = any($2)) or ipmi_ip = any($3))`,
    [site, systemIds, ips],
  );
  return {
    bySystemId: new Map(rows.flatMap(({ system_id, hostname }) => (system_id === null ? [] : [[system_id, hostname]]))),
    byIpmiIp: new Map(rows.flatMap(({ ipmi_ip, hostname }) => (ipmi_ip === null ? [] : [[ipmi_ip, hostname]]))),
  };
}
