import { Button } from "@mantine/core";
import { useState } from "react";
import type { Machine } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { MachinePowerService, MachineService } from "../../../../contract/millwright/v1/machine_pb.js";
import { ActionBar } from "../../actions/action-bar.tsx";
import { nameOfMethod } from "../../api/method-name.ts";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { ListPage } from "../../lists/list-page.tsx";
import type { PagedListOptions } from "../../lists/paged-list.ts";
import { Age } from "../../parts/age.tsx";
import { StateChip } from "../../parts/state-chip.tsx";
import { shortId, ThingLink } from "../../parts/thing-link.tsx";
import { useMe } from "../../shell/me.tsx";
import { bulkActionsOf, MOST_AT_ONCE } from "./bulk-actions.tsx";
import { remarkOf, standingOf } from "./machine-state.ts";
import classes from "./machines.module.css";
import { RunOnManyButton } from "./run-on-many/run-on-many-button.tsx";

const idOf = ({ machineId }: Machine): string => machineId;

const read: PagedListOptions<Machine>["read"] = async (request, signal) => {
  const { machines, nextPageToken, totalSize } = await clientOf(MachineService).listMachines(request, { signal });
  return { items: machines, nextPageToken, totalSize };
};

const columns: readonly Column<Machine>[] = [
  {
    title: "Machine",
    width: "minmax(110px, 1.2fr)",
    sort: "machine_id",
    cell: ({ machineId }) => <ThingLink kind="machine" id={machineId} />,
  },
  {
    title: "State",
    width: "154px",
    sort: "effective_state",
    cell: (machine) => <StateChip {...standingOf(machine)} />,
  },
  {
    title: "Since",
    width: "92px",
    sort: "phase_since",
    isNumber: true,
    from: "tablet",
    cell: ({ status }) => <Age at={status?.phaseSince} />,
  },
  {
    title: "Remark",
    width: "minmax(120px, 3fr)",
    from: "tablet",
    cell: (machine) => <Remark text={remarkOf(machine)} />,
  },
  {
    title: "Rack",
    width: "minmax(84px, 1fr)",
    sort: "rack",
    cell: ({ spec }) => <Place rack={spec?.rack ?? ""} slot={spec?.slot ?? ""} />,
  },
  {
    title: "Power",
    width: "88px",
    from: "tablet",
    cell: ({ status }) => status?.inventory?.powerState,
  },
  {
    title: "Run",
    width: "minmax(100px, 1fr)",
    from: "desktop",
    cell: ({ status }) => status?.activeRunId && <ThingLink kind="run" id={status.activeRunId} />,
  },
  {
    title: "Serial",
    width: "minmax(110px, 1fr)",
    sort: "serial",
    from: "desktop",
    cell: ({ spec }) => <span className="mono">{spec?.serial}</span>,
  },
];

const Remark = ({ text }: { readonly text: string }) => <span title={text}>{text}</span>;
const Place = ({ rack, slot }: { readonly rack: string; readonly slot: string }) =>
  rack === "" ? null : (
    <>
      <ThingLink kind="rack" id={rack} />
      {slot !== "" && <span className="dim"> · {shortId(slot)}</span>}
    </>
  );

/** Those that are selected stay as they were when they were: what is done is done to them, and to no others. */
const freeze = (
  before: ReadonlyMap<string, Machine>,
  ids: ReadonlySet<string>,
  rows: readonly Machine[],
): ReadonlyMap<string, Machine> =>
  new Map(
    [...ids].flatMap((id) => {
      const machine = before.get(id) ?? rows.find(({ machineId }) => machineId === id);
      return machine ? [[id, machine] as const] : [];
    }),
  );

interface SelectionProps {
  readonly machines: readonly Machine[];
  readonly onClear: () => void;
}

function Selection({ machines, onClear }: SelectionProps) {
  const isTooMany = machines.length > MOST_AT_ONCE;
  return (
    <div className={classes.selection} role="toolbar" aria-label="Selected machines">
      <strong>{machines.length.toLocaleString("en")} selected</strong>
      {isTooMany ? (
        <span>at most {MOST_AT_ONCE} at a time</span>
      ) : (
        <>
          <RunOnManyButton machines={machines} />
          <ActionBar actions={bulkActionsOf(machines)} shown={3} isSecondary />
        </>
      )}
      <Button size="xs" variant="subtle" onClick={onClear}>
        Clear
      </Button>
    </div>
  );
}

/** All machines, as the server filters, sorts and groups them. */
export function Machines() {
  const { may } = useMe();
  const [frozen, setFrozen] = useState<ReadonlyMap<string, Machine>>(new Map());
  const mayAct = may.has(nameOfMethod(MachinePowerService.method.setMachinePower));
  return (
    <ListPage
      title="Machines"
      noun="machine"
      kind="machine"
      columns={columns}
      read={read}
      idOf={idOf}
      idField="machine_id"
      example="phase=READY AND rack^=rack-1"
      presets={[
        { label: "Needs somebody", filter: "failing=true" },
        { label: "Being worked on", filter: 'active_run_id!=""' },
      ]}
      cli="millwright machine list"
      method={MachineService.method.listMachines}
      empty="No machine is registered."
      selection={{
        selected: new Set(frozen.keys()),
        onSelect: mayAct ? (ids, rows) => setFrozen(freeze(frozen, ids, rows)) : undefined,
        bar: frozen.size > 0 && <Selection machines={[...frozen.values()]} onClear={() => setFrozen(new Map())} />,
      }}
    />
  );
}
