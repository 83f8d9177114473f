import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { type Lifecycle, LifecycleService, type LifecycleState } from "../../../contract/millwright/v1/lifecycle_pb.js";
import { clientOf } from "./services.ts";

/** The very tables that the server decides by. They change with the server alone. */
export const useLifecycles = (): UseQueryResult<ReadonlyMap<string, Lifecycle>> =>
  useQuery({
    queryKey: ["lifecycles", "all"],
    queryFn: async ({ signal }) => {
      const { lifecycles } = await clientOf(LifecycleService).listLifecycles({}, { signal });
      return new Map(lifecycles.map((lifecycle) => [lifecycle.kind, lifecycle]));
    },
    staleTime: Number.POSITIVE_INFINITY,
  });

export function useStateOf(kind: string, state: string): LifecycleState | undefined {
  const { data } = useLifecycles();
  return data?.get(kind)?.states.find(({ name }) => name === state);
}
