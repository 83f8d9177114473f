import { type Switch, SwitchService } from "../../../../contract/millwright/v1/switch_pb.js";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { ListPage } from "../../lists/list-page.tsx";
import { Age } from "../../parts/age.tsx";
import { StateChip } from "../../parts/state-chip.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import { DEVICE_PRESETS, standingOfDevice } from "../devices/device-state.ts";

const columns: readonly Column<Switch>[] = [
  {
    title: "Switch",
    width: "minmax(120px, 1.3fr)",
    sort: "name",
    cell: ({ id, name }) => <ThingLink kind="switch" id={id} text={name || id} />,
  },
  {
    title: "State",
    width: "150px",
    sort: "state",
    cell: (device) => <StateChip {...standingOfDevice("switch", device)} />,
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
  {
    title: "Slot",
    width: "56px",
    sort: "slot_number",
    isNumber: true,
    from: "tablet",
    cell: ({ slotNumber }) => slotNumber,
  },
  {
    title: "Fabric",
    width: "110px",
    from: "tablet",
    cell: ({ fabric, primary }) => [fabric?.state, primary && "primary"].filter(Boolean).join(", "),
  },
  { title: "Power", width: "88px", sort: "power_state", from: "desktop", cell: ({ powerState }) => powerState },
];

/** All switches, but those that are marked for deletion. */
export const Switches = () => (
  <ListPage
    title="Switches"
    noun="switch"
    kind="switch"
    columns={columns}
    read={async (request, signal) => {
      const { switches, nextPageToken, totalSize } = await clientOf(SwitchService).listSwitches(request, { signal });
      return { items: switches, nextPageToken, totalSize };
    }}
    idOf={({ id }) => id}
    idField="id"
    example="rack_id=rack-1 AND primary=true"
    presets={[...DEVICE_PRESETS, { label: "Fabric not ok", filter: "fabric=not_ok" }]}
    cli="millwright switch list"
    method={SwitchService.method.listSwitches}
    empty="No switch is on record."
  />
);
