import { useQuery } from "@tanstack/react-query";
import { NodeService, type Workflow } from "../../../../contract/millwright/v1/node_pb.js";
import { listKey } from "../../api/query-keys.ts";
import { clientOf } from "../../api/services.ts";
import { useMe } from "../../shell/me.tsx";

/** What can be installed; empty for who may not know. */
export function useWorkflows(): readonly Workflow[] {
  const { may } = useMe();
  const { data = [] } = useQuery({
    queryKey: listKey("install_workflow", "all"),
    queryFn: async ({ signal }) => (await clientOf(NodeService).listWorkflows({}, { signal })).workflows,
    enabled: may.has("millwright.v1.NodeService/ListWorkflows"),
  });
  return data;
}
