import { FleetService, type FleetSite } from "../../../../contract/millwright/v1/fleet_pb.js";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { ListPage } from "../../lists/list-page.tsx";
import { Age } from "../../parts/age.tsx";

const columns: readonly Column<FleetSite>[] = [
  { title: "Site", width: "minmax(100px, 1fr)", sort: "name", cell: ({ name }) => name },
  { title: "MAAS", width: "minmax(160px, 2fr)", cell: ({ url }) => <span className="mono">{url}</span> },
  { title: "In use", width: "92px", cell: ({ enabled }) => (enabled ? "yes" : "no") },
  { title: "Description", width: "minmax(120px, 2fr)", from: "tablet", cell: ({ description }) => description },
  { title: "Changed", width: "92px", isNumber: true, from: "tablet", cell: ({ updatedAt }) => <Age at={updatedAt} /> },
];

/** The MAAS servers through which fleet nodes come. */
export const Sites = () => (
  <ListPage
    title="Sites"
    noun="site"
    kind="fleet_site"
    columns={columns}
    read={async (request, signal) => {
      const { sites, nextPageToken, totalSize } = await clientOf(FleetService).listSites(request, { signal });
      return { items: sites, nextPageToken, totalSize };
    }}
    idOf={({ name }) => name}
    idField="name"
    example="enabled=true"
    cli="millwright fleet site list"
    method={FleetService.method.listSites}
    empty="There are no sites: `millwright fleet site add` adds one."
    opens={false}
  />
);
