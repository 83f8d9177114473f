import { useNavigate } from "@tanstack/react-router";
import { type RunRecord, RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { clientOf } from "../../api/services.ts";
import { type Column, DataTable } from "../../lists/data-table.tsx";
import { FilterBar } from "../../lists/filter-bar.tsx";
import { useListSearch } from "../../lists/list-search.ts";
import { type PagedListOptions, usePagedList } from "../../lists/paged-list.ts";
import { Age } from "../../parts/age.tsx";
import { CopyAs, shellWord } from "../../parts/copy-as.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { StateChip } from "../../parts/state-chip.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import { pathOfThing } from "../thing-path.ts";
import { RunProgress } from "./run-progress.tsx";
import { purposeOf, standingOf } from "./run-state.ts";

const idOf = ({ run }: RunRecord): string => run?.runId ?? "";

const read: PagedListOptions<RunRecord>["read"] = async (request, signal) => {
  const { runs, nextPageToken, totalSize } = await clientOf(RunService).listRuns(request, { signal });
  return { items: runs, nextPageToken, totalSize };
};

const columns: readonly Column<RunRecord>[] = [
  {
    title: "Run",
    width: "minmax(120px, 1.2fr)",
    sort: "run_id",
    cell: ({ run }) => <ThingLink kind="run" id={run?.runId ?? ""} />,
  },
  { title: "State", width: "132px", sort: "phase", cell: ({ run }) => run && <StateChip {...standingOf(run)} /> },
  { title: "For", width: "minmax(90px, 1fr)", sort: "type", cell: ({ run }) => run && purposeOf(run) },
  {
    title: "On",
    width: "minmax(110px, 1.2fr)",
    sort: "target_id",
    from: "tablet",
    cell: ({ target }) =>
      target && <ThingLink kind={target.kind} id={target.id} withKind={target.kind !== "machine"} />,
  },
  { title: "Steps", width: "minmax(120px, 1fr)", from: "tablet", cell: ({ run }) => run && <RunProgress run={run} /> },
  {
    title: "Says",
    width: "minmax(120px, 3fr)",
    from: "desktop",
    cell: ({ run }) => <span title={run?.message}>{run?.waitingFor || run?.message}</span>,
  },
  { title: "By", width: "minmax(80px, 1fr)", sort: "initiator", from: "desktop", cell: ({ run }) => run?.initiator },
  {
    title: "Made",
    width: "100px",
    sort: "created_at",
    isNumber: true,
    from: "tablet",
    cell: ({ run }) => <Age at={run?.createdAt} ago />,
  },
];

/** All runs, the newest first. */
export function Runs() {
  const { filter, orderBy, setFilter, setOrder } = useListSearch();
  const navigate = useNavigate();
  const list = usePagedList({ kind: "run", filter, orderBy, read, idOf, idField: "run_id" });
  const cli = [
    "millwright run list",
    filter && `--filter ${shellWord(filter)}`,
    orderBy && `--order-by ${shellWord(orderBy)}`,
  ];
  const call = { cli: cli.filter(Boolean).join(" "), method: RunService.method.listRuns, request: { filter, orderBy } };
  return (
    <>
      <PageHead title="Runs" actions={<CopyAs call={call} />} />
      <FilterBar
        filter={filter}
        onFilter={setFilter}
        example="target_id=m-rack1-03 AND created_at>-2h"
        error={list.error}
        count={list.total === undefined ? "" : `${list.total.toLocaleString("en")} runs`}
        presets={[
          { label: "Not ended", filter: 'finished_at=""' },
          { label: "With a cause", filter: 'cause!="" AND created_at>-1d' },
        ]}
        isOld={list.isOld}
        onReadAgain={list.readAgain}
      />
      <DataTable
        label="Runs"
        columns={columns}
        rows={list.items}
        idOf={idOf}
        total={list.total}
        changed={list.changed}
        orderBy={orderBy}
        onOrder={setOrder}
        onOpen={(row) => {
          const to = pathOfThing("run", idOf(row));
          if (to !== undefined) void navigate({ to });
        }}
        onEnd={list.readMore}
        empty={list.isLoading ? "Reading …" : filter === "" ? "Nothing was run yet." : "No run is so."}
      />
    </>
  );
}
