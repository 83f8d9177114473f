import { useQuery } from "@tanstack/react-query";
import { type GetOverviewResponse, OverviewService } from "../../../../contract/millwright/v1/overview_pb.js";
import { clientOf } from "../../api/services.ts";
import { useMe } from "../../shell/me.tsx";

/** How many things are in each state, and which of them need somebody. Events make it old, and it is read again every few seconds at most. */
export function useOverview(kinds: readonly string[]): GetOverviewResponse | undefined {
  const { may } = useMe();
  const { data } = useQuery({
    queryKey: [kinds.length === 1 ? kinds[0] : "overview", "list", undefined, "counts", ...kinds],
    queryFn: ({ signal }) => clientOf(OverviewService).getOverview({ kinds: [...kinds] }, { signal }),
    enabled: may.has("millwright.v1.OverviewService/GetOverview"),
    refetchInterval: 10_000,
  });
  return data;
}
