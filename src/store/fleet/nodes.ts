import {
  type Enrollment,
  FLEET_MODES,
  type FleetMode,
  type FleetNode,
  type FleetNodeFacts,
} from "../../lifecycles/fleet-node/fleet-node.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import { parseRows, type ThingStore } from "../lifecycle/things.ts";
import { isNumber, isText, oneOf, orNull, readerOf, shapeOf } from "../postgres/stored-json.ts";

interface Row extends StateColumns {
  facts: unknown;
  site: string;
  profile: string;
  sku: string;
  hostname: string;
  ipmi_ip: string | null;
  mode: string;
  machine_id: string;
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
});

const isMode = oneOf<FleetMode>(FLEET_MODES);

const FLEET_NODE_COLUMNS = `${STATE_COLUMNS}, t.site, t.profile, t.sku, t.hostname, t.ipmi_ip, t.mode, t.machine_id`;

function parseFleetNode(row: Row): FleetNode {
  const { id, site, profile, sku, hostname, ipmi_ip: ipmiIp, mode, machine_id: machineId } = row;
  if (!isMode(mode)) throw new TypeError(`mode cannot be ${JSON.stringify(mode)}`);
  return {
    ...parseStateColumns(row),
    ...{ id, site, profile, sku, hostname, ipmiIp, mode, machineId },
    facts: readFleetNodeFacts(row.facts),
  };
}

export const fleetNodeStore: ThingStore<FleetNode> = {
  lifecycle: fleetNodeLifecycle,
  table: "fleet_nodes",
  requests: {},
  related: {
    // What may be done with a machine depends on its node.
    machine: { of: ({ machineId }) => ({ kind: machineLifecycle.kind, id: machineId }) },
  },
  restsIdle: () => true,
  async load(db, ids) {
    const text = `select ${FLEET_NODE_COLUMNS} from fleet_nodes t where t.id = any($1)`;
    return parseRows(await db.query<Row>({ name: "fleet_nodes.load", text, values: [ids] }), parseFleetNode);
  },
};
