import { NodeService, type Workflow } from "../../../../contract/millwright/v1/node_pb.js";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { WholeList } from "../../lists/whole-list.tsx";
import { Age } from "../../parts/age.tsx";

const stepsOf = ({ steps }: Workflow): string =>
  steps.map(({ name, type }) => `${name} (${type.replaceAll("_", " ")})`).join(" → ");

const columns: readonly Column<Workflow>[] = [
  { title: "Workflow", width: "minmax(120px, 1fr)", cell: ({ id }) => <span className="mono">{id}</span> },
  {
    title: "Name",
    width: "minmax(120px, 1.4fr)",
    cell: ({ name, description }) => <span title={description}>{name}</span>,
  },
  { title: "Boots", width: "90px", from: "tablet", cell: ({ method }) => method },
  {
    title: "For",
    width: "130px",
    from: "tablet",
    cell: ({ architecture, bootMode }) => `${architecture}, ${bootMode}`,
  },
  {
    title: "Steps",
    width: "minmax(120px, 2.4fr)",
    from: "desktop",
    cell: (workflow) => <span title={stepsOf(workflow)}>{stepsOf(workflow)}</span>,
  },
  { title: "Leads to", width: "92px", from: "tablet", cell: ({ nextState }) => nextState },
  { title: "Changed", width: "92px", isNumber: true, from: "tablet", cell: ({ updatedAt }) => <Age at={updatedAt} /> },
];

/** What is installed over the network. */
export const Workflows = () => (
  <WholeList
    title="Workflows"
    noun="workflow"
    kind="install_workflow"
    columns={columns}
    read={async (signal) => (await clientOf(NodeService).listWorkflows({}, { signal })).workflows}
    idOf={({ id }) => id}
    textOf={(workflow) => [workflow.id, workflow.name, workflow.description, stepsOf(workflow)].join(" ")}
    cli="millwright workflow list"
    method={NodeService.method.listWorkflows}
    empty="There are no workflows: `millwright workflow create` adds one."
  />
);
