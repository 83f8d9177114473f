import type { Plan } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { PlanCatalogService } from "../../../../contract/millwright/v1/plan_pb.js";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { ListPage } from "../../lists/list-page.tsx";

const columns: readonly Column<Plan>[] = [
  {
    title: "Plan",
    width: "minmax(140px, 1fr)",
    sort: "plan_id",
    cell: ({ planId }) => <span className="mono">{planId}</span>,
  },
  { title: "Name", width: "minmax(120px, 1fr)", from: "tablet", cell: ({ displayName }) => displayName },
  { title: "Steps", width: "minmax(160px, 3fr)", cell: ({ steps }) => <Steps names={steps.map(({ name }) => name)} /> },
];

const Steps = ({ names }: { readonly names: readonly string[] }) => (
  <span title={names.join(" → ")}>{names.join(" → ")}</span>
);

/** What runs carry out. */
export const Plans = () => (
  <ListPage
    title="Plans"
    noun="plan"
    kind="plan"
    columns={columns}
    read={async (request, signal) => {
      const { plans, nextPageToken, totalSize } = await clientOf(PlanCatalogService).listPlans(request, { signal });
      return { items: plans, nextPageToken, totalSize };
    }}
    idOf={({ planId }) => planId}
    idField="plan_id"
    example="plan_id^=plan/re"
    cli="millwright plan list"
    method={PlanCatalogService.method.listPlans}
    empty="There are no plans."
    opens={false}
  />
);
