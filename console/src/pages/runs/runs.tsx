import { type RunRecord, RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { ListPage } from "../../lists/list-page.tsx";
import type { PagedListOptions } from "../../lists/paged-list.ts";
import { Age } from "../../parts/age.tsx";
import { StateChip } from "../../parts/state-chip.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
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
export const Runs = () => (
  <ListPage
    title="Runs"
    noun="run"
    kind="run"
    columns={columns}
    read={read}
    idOf={idOf}
    idField="run_id"
    example="target_id=m-rack1-03 AND created_at>-2h"
    presets={[
      { label: "Not ended", filter: 'finished_at=""' },
      { label: "With a cause", filter: 'cause!="" AND created_at>-1d' },
    ]}
    cli="millwright run list"
    method={RunService.method.listRuns}
    empty="Nothing was run yet."
  />
);
