import { type Node, NodeService } from "../../../../contract/millwright/v1/node_pb.js";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { ListPage } from "../../lists/list-page.tsx";
import { Age } from "../../parts/age.tsx";
import { StateChip } from "../../parts/state-chip.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import { Progress } from "./progress.tsx";

const columns: readonly Column<Node>[] = [
  { title: "Node", width: "minmax(120px, 1.2fr)", sort: "id", cell: ({ id }) => <ThingLink kind="install" id={id} /> },
  {
    title: "State",
    width: "150px",
    sort: "state",
    cell: ({ id, state, stateChangedAt }) => <StateChip kind="install" id={id} state={state} since={stateChangedAt} />,
  },
  {
    title: "Since",
    width: "92px",
    sort: "state_changed_at",
    isNumber: true,
    from: "tablet",
    cell: ({ stateChangedAt }) => <Age at={stateChangedAt} />,
  },
  {
    title: "Progress",
    width: "140px",
    cell: ({ installationProgress }) =>
      installationProgress !== undefined && <Progress percent={installationProgress} />,
  },
  {
    title: "Remark",
    width: "minmax(120px, 2fr)",
    from: "tablet",
    cell: ({ lastInstallError }) => <span title={lastInstallError}>{lastInstallError}</span>,
  },
  { title: "Hostname", width: "minmax(90px, 1fr)", sort: "hostname", from: "tablet", cell: ({ hostname }) => hostname },
  {
    title: "MAC",
    width: "150px",
    sort: "mac_address",
    from: "desktop",
    cell: ({ macAddress }) => <span className="mono">{macAddress}</span>,
  },
  {
    title: "Workflow",
    width: "minmax(90px, 1fr)",
    sort: "effective_workflow_id",
    from: "desktop",
    cell: ({ effectiveWorkflowId }) => effectiveWorkflowId,
  },
  {
    title: "Seen",
    width: "92px",
    sort: "last_seen_at",
    isNumber: true,
    from: "desktop",
    cell: ({ lastSeenAt }) => <Age at={lastSeenAt} />,
  },
];

/** Machines that boot and install from the network. */
export const Installs = () => (
  <ListPage
    title="Installs"
    noun="install"
    kind="install"
    columns={columns}
    read={async (request, signal) => {
      const { nodes, nextPageToken, totalSize } = await clientOf(NodeService).listNodes(request, { signal });
      return { items: nodes, nextPageToken, totalSize };
    }}
    idOf={({ id }) => id}
    idField="id"
    example="install_attempts>0 AND tag=gpu"
    presets={[{ label: "Failed before", filter: "install_attempts>0" }]}
    cli="millwright node list"
    method={NodeService.method.listNodes}
    empty="No machine has asked to boot from the network."
  />
);
