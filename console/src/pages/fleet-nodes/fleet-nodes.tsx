import { type FleetNode, FleetNodeService } from "../../../../contract/millwright/v1/fleet_node_pb.js";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { ListPage } from "../../lists/list-page.tsx";
import { Age } from "../../parts/age.tsx";
import { StateChip } from "../../parts/state-chip.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";

const columns: readonly Column<FleetNode>[] = [
  {
    title: "Node",
    width: "minmax(120px, 1.2fr)",
    sort: "hostname",
    cell: ({ id, hostname }) => <ThingLink kind="fleet_node" id={id} text={hostname || id} />,
  },
  {
    title: "State",
    width: "150px",
    sort: "state",
    cell: ({ id, state, stateSince }) => <StateChip kind="fleet_node" id={id} state={state} since={stateSince} />,
  },
  {
    title: "Since",
    width: "92px",
    sort: "state_since",
    isNumber: true,
    from: "tablet",
    cell: ({ stateSince }) => <Age at={stateSince} />,
  },
  {
    title: "Remark",
    width: "minmax(120px, 2fr)",
    from: "tablet",
    cell: ({ quarantineReason }) => <span title={quarantineReason}>{quarantineReason}</span>,
  },
  { title: "Site", width: "minmax(80px, 1fr)", sort: "site", cell: ({ site }) => site },
  { title: "SKU", width: "minmax(80px, 1fr)", sort: "sku", from: "tablet", cell: ({ sku }) => sku },
  { title: "Mode", width: "76px", sort: "mode", from: "desktop", cell: ({ mode }) => mode },
  {
    title: "Machine",
    width: "minmax(100px, 1fr)",
    sort: "machine_id",
    from: "desktop",
    cell: ({ machineId }) => machineId !== "" && <ThingLink kind="machine" id={machineId} />,
  },
  {
    title: "BMC",
    width: "120px",
    sort: "ipmi_ip",
    from: "desktop",
    cell: ({ ipmiIp }) => <span className="mono">{ipmiIp}</span>,
  },
];

/** The inventory view: the coarse word of each node, and nothing finer. */
export const FleetNodes = () => (
  <ListPage
    title="Fleet nodes"
    noun="fleet node"
    kind="fleet_node"
    columns={columns}
    read={async (request, signal) => {
      const { nodes, nextPageToken, totalSize } = await clientOf(FleetNodeService).listFleetNodes(request, { signal });
      return { items: nodes, nextPageToken, totalSize };
    }}
    idOf={({ id }) => id}
    idField="node_id"
    example="site=lab AND sku=gpu-8"
    presets={[{ label: "Kept from scheduling", filter: 'quarantine_reason!=""' }]}
    cli="millwright fleet list"
    method={FleetNodeService.method.listFleetNodes}
    empty="No node is in the inventory."
  />
);
