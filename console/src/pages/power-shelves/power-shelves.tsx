import { type PowerShelf, PowerShelfService } from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { ListPage } from "../../lists/list-page.tsx";
import { Age } from "../../parts/age.tsx";
import { Meter } from "../../parts/blocks.tsx";
import { StateChip } from "../../parts/state-chip.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import { DEVICE_PRESETS, standingOfDevice } from "../devices/device-state.ts";
import { drawnWatts, kilowatts } from "./power.ts";

const columns: readonly Column<PowerShelf>[] = [
  {
    title: "Shelf",
    width: "minmax(120px, 1.3fr)",
    sort: "name",
    cell: ({ id, name }) => <ThingLink kind="power_shelf" id={id} text={name || id} />,
  },
  {
    title: "State",
    width: "150px",
    sort: "state",
    cell: (shelf) => <StateChip {...standingOfDevice("power_shelf", shelf)} />,
  },
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
    cell: ({ stateReason }) => <span title={stateReason}>{stateReason}</span>,
  },
  {
    title: "Rack",
    width: "minmax(80px, 1fr)",
    sort: "rack_id",
    cell: ({ rackId }) => rackId !== "" && <ThingLink kind="rack" id={rackId} />,
  },
  { title: "Power", width: "88px", sort: "power_state", from: "tablet", cell: ({ powerState }) => powerState },
  { title: "Draw", width: "230px", sort: "capacity_watts", from: "desktop", cell: (shelf) => <Draw shelf={shelf} /> },
];

function Draw({ shelf }: { readonly shelf: PowerShelf }) {
  const drawn = drawnWatts(shelf.sensors);
  const capacity = shelf.capacityWatts;
  if (drawn === undefined) return capacity === undefined ? null : <>of {kilowatts(capacity)}</>;
  const text = capacity === undefined ? kilowatts(drawn) : `${kilowatts(drawn)} of ${kilowatts(capacity)}`;
  return (
    <>
      {capacity !== undefined && <Meter part={drawn} whole={capacity} label={text} />} {text}
    </>
  );
}

/** All power shelves, but those that are marked for deletion. */
export const PowerShelves = () => (
  <ListPage
    title="Power shelves"
    noun="power shelf"
    kind="power_shelf"
    columns={columns}
    read={async (request, signal) => {
      const answer = await clientOf(PowerShelfService).listPowerShelves(request, { signal });
      return { items: answer.powerShelves, nextPageToken: answer.nextPageToken, totalSize: answer.totalSize };
    }}
    idOf={({ id }) => id}
    idField="id"
    example="rack_id=rack-1 AND power_state=on"
    presets={DEVICE_PRESETS}
    cli="millwright power-shelf list"
    method={PowerShelfService.method.listPowerShelves}
    empty="No power shelf is on record."
  />
);
