import { Link } from "@tanstack/react-router";
import type { Plan } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { PlanCatalogService } from "../../../../contract/millwright/v1/plan_pb.js";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { ListPage } from "../../lists/list-page.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import { useMe } from "../../shell/me.tsx";

const columns: readonly Column<Plan>[] = [
  {
    title: "Plan",
    width: "minmax(140px, 1fr)",
    sort: "plan_id",
    cell: ({ planId }) => <ThingLink kind="plan" id={planId} />,
  },
  { title: "Name", width: "minmax(120px, 1fr)", from: "tablet", cell: ({ displayName }) => displayName },
  { title: "Steps", width: "minmax(160px, 3fr)", cell: ({ steps }) => <Steps names={steps.map(({ name }) => name)} /> },
];

const Steps = ({ names }: { readonly names: readonly string[] }) => (
  <span title={names.join(" → ")}>{names.join(" → ")}</span>
);

function NewPlanLink() {
  const { may } = useMe();
  if (!may.has("millwright.v1.PlanCatalogService/CreatePlan")) return null;
  return (
    <p>
      <Link to="/new-plan">New plan …</Link>
    </p>
  );
}

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
    above={<NewPlanLink />}
  />
);
