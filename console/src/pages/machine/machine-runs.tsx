import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { listKey } from "../../api/query-keys.ts";
import { clientOf } from "../../api/services.ts";
import { Age } from "../../parts/age.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Section } from "../../parts/section.tsx";
import { StateChip } from "../../parts/state-chip.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import { purposeOf, standingOf } from "../runs/run-state.ts";
import classes from "./machine-runs.module.css";

const MOST = 8;

/** What was run on it last. */
export function MachineRuns({ machineId }: { readonly machineId: string }) {
  const filter = `machine_id="${machineId}"`;
  const { data, error } = useQuery({
    queryKey: listKey("run", "machine", machineId),
    queryFn: async ({ signal }) => (await clientOf(RunService).listRuns({ filter, pageSize: MOST }, { signal })).runs,
  });
  return (
    <Section
      title="Runs"
      aside={
        <Link to="/runs" search={{ filter } as never}>
          all
        </Link>
      }
    >
      {error !== null && <ErrorNote error={error} />}
      {data?.length === 0 && <p className="dim">Nothing was run on it.</p>}
      <ul className={classes.runs}>
        {data?.map(
          ({ run }) =>
            run && (
              <li key={run.runId}>
                <StateChip {...standingOf(run)} />
                <ThingLink kind="run" id={run.runId} />
                <span>{purposeOf(run)}</span>
                <span className={classes.says}>{run.message}</span>
                <span className="dim">
                  <Age at={run.createdAt} ago />
                </span>
              </li>
            ),
        )}
      </ul>
    </Section>
  );
}
