import { useQuery } from "@tanstack/react-query";
import { type PreviewRunResponse, RunActionsService } from "../../../../../contract/millwright/v1/run_pb.js";
import { topicKey } from "../../../api/query-keys.ts";
import { clientOf } from "../../../api/services.ts";
import { spanText } from "../../../api/times.ts";
import { ErrorNote } from "../../../parts/error-note.tsx";
import classes from "./start-run.module.css";

interface PreviewProps {
  readonly machineId: string;
  readonly planId: string;
}

/** What a run of the plan would do to the machine now, by the server's own check: nothing is done by asking. */
export function Preview({ machineId, planId }: PreviewProps) {
  const { data, error } = useQuery({
    queryKey: topicKey("machine", "preview", machineId, planId),
    queryFn: ({ signal }) => clientOf(RunActionsService).previewRun({ machineId, planId }, { signal }),
    staleTime: 2_000,
  });
  if (error !== null) return <ErrorNote error={error} />;
  if (data === undefined) return <p className="dim">Reading what it would do …</p>;
  return (
    <div className={classes.preview}>
      <Warnings preview={data} />
      <p>
        {data.steps.length} steps, {rebootsOf(data)}
        {data.expectedDuration && `, usually ${spanText(Number(data.expectedDuration.seconds) * 1_000)}`}
      </p>
      <ol className={classes.steps}>
        {data.steps.map(({ step, reboots, expectedDuration, children }) => (
          <li key={step?.name}>
            {step?.name} <span className="dim">{step?.kind.case}</span>
            {reboots && <span className={classes.reboots}>reboots</span>}
            {expectedDuration && (
              <span className="dim"> usually {spanText(Number(expectedDuration.seconds) * 1_000)}</span>
            )}
            {children.length > 0 && <span className="dim"> starts {children.length} runs</span>}
          </li>
        ))}
      </ol>
    </div>
  );
}

const rebootsOf = ({ reboots }: PreviewRunResponse): string =>
  reboots === 0 ? "no reboot" : reboots === 1 ? "1 reboot" : `${reboots} reboots`;

function Warnings({ preview }: { readonly preview: PreviewRunResponse }) {
  const { disturbsCluster, conflicts, warnings, missingCapabilities } = preview;
  const all = [
    ...(disturbsCluster === "" ? [] : [`It disturbs cluster ${disturbsCluster}, which the machine serves.`]),
    ...missingCapabilities.map((each) => `The machine's provider cannot do: ${each}.`),
    ...conflicts,
    ...warnings,
  ];
  if (all.length === 0) return null;
  return (
    <div role="alert">
      <ul className={classes.warnings}>
        {all.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
    </div>
  );
}
