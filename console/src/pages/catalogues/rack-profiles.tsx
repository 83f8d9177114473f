import { type RackProfile, type RackProfilePart, RackService } from "../../../../contract/millwright/v1/rack_pb.js";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { WholeList } from "../../lists/whole-list.tsx";

/** As `18 × GB200, 5.7 kW`. */
const partText = (part: RackProfilePart | undefined): string =>
  part === undefined || part.count === 0
    ? ""
    : [
        `${part.count} × ${[part.vendor, part.name].filter(Boolean).join(" ") || "any"}`,
        part.watts === 0 ? "" : `${(part.watts / 1_000).toFixed(1)} kW each`,
      ]
        .filter(Boolean)
        .join(", ");

const columns: readonly Column<RackProfile>[] = [
  { title: "Profile", width: "minmax(110px, 1fr)", cell: ({ name }) => name },
  { title: "Compute trays", width: "minmax(120px, 1.4fr)", cell: ({ compute }) => partText(compute) },
  { title: "Switches", width: "minmax(110px, 1.2fr)", from: "tablet", cell: ({ switches }) => partText(switches) },
  {
    title: "Power shelves",
    width: "minmax(110px, 1.2fr)",
    from: "tablet",
    cell: ({ powerShelves }) => partText(powerShelves),
  },
  { title: "Firmware of", width: "130px", from: "desktop", cell: ({ hardwareType }) => hardwareType },
  { title: "Topology", width: "170px", from: "desktop", cell: ({ topology }) => topology },
  { title: "Class", width: "72px", from: "desktop", cell: (profile) => profile.class || "prod" },
];

/** What racks of one kind consist of. */
export const RackProfiles = () => (
  <WholeList
    title="Rack profiles"
    noun="profile"
    kind="rack_profile"
    columns={columns}
    read={async (signal) => (await clientOf(RackService).listRackProfiles({}, { signal })).profiles}
    idOf={({ name }) => name}
    textOf={({ name, hardwareType, topology, compute }) => [name, hardwareType, topology, compute?.name].join(" ")}
    cli="millwright rack profile list"
    method={RackService.method.listRackProfiles}
    empty="There are no rack profiles: `millwright rack profile put` adds one."
  />
);
