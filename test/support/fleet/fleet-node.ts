import type { FleetNode, FleetNodeFacts } from "../../../src/lifecycles/fleet-node/fleet-node.ts";

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
