import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { type ListFieldInfo, OverviewService } from "../../../contract/millwright/v1/overview_pb.js";
import { useLifecycles } from "../api/lifecycles.ts";
import { clientOf } from "../api/services.ts";

/** What the list of a kind can be filtered, sorted and grouped by; nothing for lists of what has no lifecycle. */
export function useListFields(kind: string): UseQueryResult<readonly ListFieldInfo[]> {
  const { data: lifecycles } = useLifecycles();
  return useQuery({
    queryKey: [kind, "list-fields"],
    queryFn: async ({ signal }) => (await clientOf(OverviewService).describeList({ kind }, { signal })).fields,
    enabled: lifecycles?.has(kind) ?? false,
    staleTime: Number.POSITIVE_INFINITY,
  });
}
