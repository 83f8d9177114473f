import { randomBytes } from "node:crypto";
import type { FleetNode, FleetNodeFacts } from "../../../src/lifecycles/fleet-node/fleet-node.ts";
import type { Queryable } from "../../../src/store/postgres/database.ts";

/** A node of a MAAS site in the state. */
export const aFleetNode = (
  state: string,
  facts: Partial<FleetNodeFacts> = {},
  change: Partial<FleetNode> = {},
): FleetNode => ({
  id: "fn-1",
  version: 3,
  basis: 2,
  state: { name: state },
  stateSince: new Date("2026-11-18T08:00:00Z"),
  stateVersion: 2,
  outcome: null,
  site: "lab",
  profile: "h100",
  sku: "gpu8",
  hostname: "gpu-17",
  ipmiIp: "10.0.0.17",
  mode: "maas",
  machineId: "m-17",
  facts: { systemId: null, quarantineReason: null, enrollment: null, deployOrderedAt: null, ...facts },
  ...change,
});

/** Puts an active node on record that is this machine, for what others do with the machine. */
export async function insertNode(db: Queryable, machineId: string): Promise<{ readonly id: string }> {
  const id = `fn-${randomBytes(6).toString("hex")}`;
  await db.query(
    `insert into fleet_sites (name, url, created_by) values ('lab', 'http://192.0.2.1/MAAS', 'test') on conflict (name) do nothing`,
  );
  await db.query(
    `insert into fleet_nodes (id, site, profile, sku, hostname, mode, machine_id, request_id, fingerprint, created_by, state)
     values ($1, 'lab', 'h100', 'gpu8', $1, 'maas', $2, $1, '', 'test', 'active')`,
    [id, machineId],
  );
  return { id };
}

/** As if it had come there. */
export const placeNode = (db: Queryable, id: string, state: string): Promise<unknown> =>
  db.query("update fleet_nodes set state = $2, basis = basis + 1 where id = $1", [id, state]);
