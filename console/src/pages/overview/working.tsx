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
import { RunProgress } from "../runs/run-progress.tsx";
import { purposeOf, standingOf } from "../runs/run-state.ts";
import classes from "./working.module.css";

const MOST = 8;
const FILTER = 'finished_at=""';

/** Runs that have not ended, the oldest first, with how far they are. */
export function Working() {
  const { data, error } = useQuery({
    queryKey: listKey("run", "working"),
    queryFn: ({ signal }) =>
      clientOf(RunService).listRuns(
        { filter: FILTER, orderBy: "created_at", pageSize: MOST, withTotal: true },
        { signal },
      ),
  });
  if (error !== null) return <ErrorNote error={error} />;
  if (data === undefined) return null;
  const total = data.totalSize ?? data.runs.length;
  if (total === 0) return <p className="dim">No run is going.</p>;
  return (
    <Section
      title="Working"
      aside={
        <Link to="/runs" search={{ filter: FILTER } as never}>
          {total === 1 ? "1 run" : `${total.toLocaleString("en")} runs`}
        </Link>
      }
    >
      <ul className={classes.runs}>
        {data.runs.map(
          ({ run, target }) =>
            run && (
              <li key={run.runId} className={classes.run}>
                <span>
                  <StateChip {...standingOf(run)} />
                </span>
                <span className={classes.what}>
                  <ThingLink kind="run" id={run.runId} text={purposeOf(run)} /> on{" "}
                  {target && <ThingLink kind={target.kind} id={target.id} />}
                </span>
                <RunProgress run={run} />
                <span className={classes.says} title={run.message}>
                  {run.waitingFor || run.message}
                </span>
                <span className={classes.since}>
                  <Age at={run.startedAt ?? run.createdAt} />
                </span>
              </li>
            ),
        )}
      </ul>
    </Section>
  );
}
