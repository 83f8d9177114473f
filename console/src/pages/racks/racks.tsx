import { type Rack, type RackCount, RackService } from "../../../../contract/millwright/v1/rack_pb.js";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { ListPage } from "../../lists/list-page.tsx";
import { Age } from "../../parts/age.tsx";
import { StateChip } from "../../parts/state-chip.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import { standingOfRack } from "./rack-state.ts";

const idOf = ({ id }: Rack): string => id;

const columns: readonly Column<Rack>[] = [
  { title: "Rack", width: "minmax(100px, 1fr)", sort: "id", cell: ({ id }) => <ThingLink kind="rack" id={id} /> },
  { title: "State", width: "150px", sort: "state", cell: (rack) => <StateChip {...standingOfRack(rack)} /> },
  {
    title: "Since",
    width: "92px",
    sort: "state_since",
    isNumber: true,
    from: "tablet",
    cell: ({ stateSince }) => <Age at={stateSince} />,
  },
  {
    title: "Remark",
    width: "minmax(120px, 3fr)",
    from: "tablet",
    cell: ({ error, reason }) => <span title={error || reason}>{error || reason}</span>,
  },
  { title: "Trays", width: "72px", isNumber: true, cell: ({ counts }) => <Ready count={counts[0]} /> },
  {
    title: "Switches",
    width: "84px",
    isNumber: true,
    from: "tablet",
    cell: ({ counts }) => <Ready count={counts[1]} />,
  },
  {
    title: "Shelves",
    width: "80px",
    isNumber: true,
    from: "tablet",
    cell: ({ counts }) => <Ready count={counts[2]} />,
  },
  { title: "Profile", width: "minmax(90px, 1fr)", sort: "profile", from: "desktop", cell: ({ profile }) => profile },
  {
    title: "Run",
    width: "minmax(100px, 1fr)",
    from: "desktop",
    cell: ({ runId }) => runId !== "" && <ThingLink kind="run" id={runId} />,
  },
];

/** How many are ready of those that should be there. */
function Ready({ count }: { readonly count: RackCount | undefined }) {
  if (count === undefined) return null;
  const { ready, expected, have, notReady } = count;
  return <span title={notReady.join("\n")}>{`${ready}/${Math.max(expected, have)}`}</span>;
}

/** All racks, those that need somebody a press away. */
export const Racks = () => (
  <ListPage
    title="Racks"
    noun="rack"
    kind="rack"
    columns={columns}
    read={async (request, signal) => {
      const { racks, nextPageToken, totalSize } = await clientOf(RackService).listRacks(request, { signal });
      return { items: racks, nextPageToken, totalSize };
    }}
    idOf={idOf}
    idField="id"
    example="state=ready AND profile=nvl72"
    presets={[
      { label: "Needs somebody", filter: "stuck=true" },
      { label: "Being worked on", filter: "urgency=1" },
    ]}
    cli="millwright rack list"
    method={RackService.method.listRacks}
    empty="No rack is on record."
  />
);
