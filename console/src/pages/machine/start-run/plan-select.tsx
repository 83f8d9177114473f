import { NativeSelect } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { PlanCatalogService } from "../../../../../contract/millwright/v1/plan_pb.js";
import { listKey } from "../../../api/query-keys.ts";
import { clientOf } from "../../../api/services.ts";
import { ErrorNote } from "../../../parts/error-note.tsx";

interface PlanSelectProps {
  /** Empty: none is chosen yet. */
  readonly planId: string;
  readonly onChoose: (planId: string) => void;
}

export function PlanSelect({ planId, onChoose }: PlanSelectProps) {
  const { data = [], error } = useQuery({
    queryKey: listKey("plan", "all"),
    queryFn: async ({ signal }) =>
      (await clientOf(PlanCatalogService).listPlans({ pageSize: 1_000 }, { signal })).plans,
  });
  return (
    <>
      {error !== null && <ErrorNote error={error} />}
      <NativeSelect
        label="Plan"
        data-autofocus
        value={planId}
        onChange={(event) => onChoose(event.currentTarget.value)}
        data={[
          { value: "", label: "Choose a plan …" },
          ...data.map(({ planId: value, displayName }) => ({
            value,
            label: displayName === "" || displayName === value ? value : `${value}: ${displayName}`,
          })),
        ]}
      />
    </>
  );
}
