import { type Cluster, ClusterService } from "../../../../contract/millwright/v1/cluster_pb.js";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { ListPage } from "../../lists/list-page.tsx";
import { Age } from "../../parts/age.tsx";

const columns: readonly Column<Cluster>[] = [
  { title: "Cluster", width: "minmax(120px, 1fr)", sort: "name", cell: ({ name }) => name },
  { title: "API", width: "minmax(160px, 3fr)", cell: ({ apiUrl }) => <span className="mono">{apiUrl}</span> },
  { title: "Added", width: "92px", isNumber: true, from: "tablet", cell: ({ createdAt }) => <Age at={createdAt} /> },
];

/** What machines join. */
export const Clusters = () => (
  <ListPage
    title="Clusters"
    noun="cluster"
    kind="cluster"
    columns={columns}
    read={async (request, signal) => {
      const { clusters, nextPageToken, totalSize } = await clientOf(ClusterService).listClusters(request, { signal });
      return { items: clusters, nextPageToken, totalSize };
    }}
    idOf={({ name }) => name}
    idField="name"
    example="name^=prod"
    cli="millwright cluster list"
    method={ClusterService.method.listClusters}
    empty="There are no clusters: `millwright cluster create` adds one."
    opens={false}
  />
);
