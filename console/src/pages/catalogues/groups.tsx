import { Link } from "@tanstack/react-router";
import { type NodeGroup, NodeService } from "../../../../contract/millwright/v1/node_pb.js";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { WholeList } from "../../lists/whole-list.tsx";
import { pathOfList } from "../thing-path.ts";

const yes = (is: boolean) => (is ? "yes" : "no");

const columns: readonly Column<NodeGroup>[] = [
  {
    title: "Group",
    width: "minmax(140px, 1.4fr)",
    cell: ({ name, depth, description }) => (
      <span style={{ paddingLeft: depth * 16 }} title={description}>
        {name}
      </span>
    ),
  },
  {
    title: "Workflow",
    width: "minmax(120px, 1.4fr)",
    cell: ({ effectiveWorkflowId, defaultWorkflowId }) => (
      <>
        {effectiveWorkflowId} {effectiveWorkflowId !== defaultWorkflowId && <span className="dim">from above</span>}
      </>
    ),
  },
  { title: "Approves itself", width: "120px", from: "tablet", cell: (group) => yes(group.effectiveAutoProvision) },
  { title: "Activates itself", width: "120px", from: "tablet", cell: (group) => yes(group.effectiveAutoPromote) },
  { title: "Nodes", width: "92px", cell: ({ id }) => <NodesOf id={id} /> },
];

function NodesOf({ id }: { readonly id: string }) {
  const to = pathOfList("install", `group_id="${id}"`);
  return to === undefined ? null : <Link to={to}>show</Link>;
}

/** Nodes that are treated alike; each group stands below the one that it is in. */
export const Groups = () => (
  <WholeList
    title="Groups"
    noun="group"
    kind="device_group"
    columns={columns}
    read={async (signal) => inTree((await clientOf(NodeService).listNodeGroups({}, { signal })).groups)}
    idOf={({ id }) => id}
    textOf={({ name, description, effectiveWorkflowId }) => [name, description, effectiveWorkflowId].join(" ")}
    cli="millwright group list"
    method={NodeService.method.listNodeGroups}
    empty="There are no groups: `millwright group create` adds one."
  />
);

/** Each right after the one that it is in. */
function inTree(groups: readonly NodeGroup[]): NodeGroup[] {
  const below = Map.groupBy(groups, ({ parentId }) => parentId);
  const withAllBelow = (group: NodeGroup): NodeGroup[] => [group, ...(below.get(group.id) ?? []).flatMap(withAllBelow)];
  return (below.get("") ?? []).flatMap(withAllBelow);
}
