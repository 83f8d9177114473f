import { definePage } from "../page.ts";

export const fleetNodesPage = definePage({
  path: "/fleet-nodes",
  title: "Fleet nodes",
  nav: { group: "fleet" },
  lists: "fleet_node",
  needs: "millwright.v1.FleetNodeService/ListFleetNodes",
  load: async () => (await import("./fleet-nodes.tsx")).FleetNodes,
});

export const fleetNodePage = definePage({
  path: "/fleet-nodes/$id",
  title: "Fleet node",
  thing: "fleet_node",
  needs: "millwright.v1.FleetNodeService/GetFleetNode",
  load: async () => (await import("./fleet-node.tsx")).FleetNodePage,
});
