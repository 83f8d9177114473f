import { useQuery } from "@tanstack/react-query";
import { RunActionsService } from "../../../../../contract/millwright/v1/run_pb.js";
import { shownError } from "../../../api/errors.ts";
import { clientOf } from "../../../api/services.ts";
import { countWords } from "../../../parts/count-words.ts";
import { ErrorNote } from "../../../parts/error-note.tsx";
import { ThingLink } from "../../../parts/thing-link.tsx";
import { inTurns, type MachinePreview, type ManySummary, summaryOf } from "./many-previews.ts";
import classes from "./run-on-many.module.css";

interface ManyPreviewProps {
  readonly machineIds: readonly string[];
  readonly planId: string;
}

const AT_A_TIME = 3;

/** What runs of the plan would do to each of the machines now: by the server's own check of each, before anything is done. */
export function ManyPreview({ machineIds, planId }: ManyPreviewProps) {
  const { data, error } = useQuery({
    queryKey: ["machine", "preview-many", undefined, planId, ...machineIds],
    queryFn: ({ signal }) =>
      inTurns(machineIds, AT_A_TIME, async (machineId): Promise<MachinePreview> => {
        try {
          const preview = await clientOf(RunActionsService).previewRun({ machineId, planId }, { signal });
          return { machineId, preview };
        } catch (problem) {
          if (signal.aborted) throw problem;
          return { machineId, refusal: shownError(problem).message };
        }
      }),
    staleTime: 10_000,
  });
  if (error !== null) return <ErrorNote error={error} />;
  if (data === undefined)
    return <p className="dim">Checking what it would do to {countWords(machineIds.length, "machine")} …</p>;
  return <Summary summary={summaryOf(data)} total={data.length} />;
}

function Summary({ summary, total }: { readonly summary: ManySummary; readonly total: number }) {
  const { reboots, disturbed, hindered, warned } = summary;
  return (
    <div className={classes.summary} role="status">
      <p>
        <strong>{reboots === 0 ? "No machine reboots" : `${reboots} of ${countWords(total, "machine")} reboot`}</strong>
        {hindered.length === 0 ? "; nothing stands in the way of any." : "."}
      </p>
      {[...disturbed].map(([cluster, nodes]) => (
        <p key={cluster} className={classes.trouble}>
          It disturbs cluster {cluster}: {countWords(nodes, "machine")} that serve it are not drained first.
        </p>
      ))}
      <Reasons title="Refused, or held up" of={hindered} />
      <Reasons title="Look again" of={warned} />
    </div>
  );
}

function Reasons({ title, of }: { readonly title: string; readonly of: ManySummary["hindered"] }) {
  if (of.length === 0) return null;
  return (
    <section>
      <h2>
        {title}: {of.length}
      </h2>
      <ul className={classes.reasons}>
        {of.map(({ machineId, why }) => (
          <li key={machineId}>
            <ThingLink kind="machine" id={machineId} /> {why.join("; ")}
          </li>
        ))}
      </ul>
    </section>
  );
}
