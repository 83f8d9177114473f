import type { Capabilities, Provider } from "../../capabilities/provider.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { createClusterAccess } from "./access.ts";
import { createKubernetesClient, type KubernetesClientOptions } from "./client.ts";
import { createCluster } from "./cluster.ts";
import { createNodeList } from "./node-list.ts";

export interface KubernetesProvider extends Provider {
  readonly can: Pick<Capabilities, "cluster" | "clusterAccess" | "nodes">;
  close(): void;
}

export function createKubernetesProvider(
  options: KubernetesClientOptions & { readonly clock?: Clock } = {},
): KubernetesProvider {
  const client = createKubernetesClient(options);
  return {
    name: "kubernetes",
    can: {
      cluster: createCluster(client, options.clock),
      clusterAccess: createClusterAccess(client),
      nodes: createNodeList(client),
    },
    close: () => client.close(),
  };
}
