import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useState } from "react";
import { type Run, StepStatus_State } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { type RunRecord, RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { ActionBar } from "../../actions/action-bar.tsx";
import { harmless } from "../../api/hostile-text.ts";
import { topicKey } from "../../api/query-keys.ts";
import { clientOf } from "../../api/services.ts";
import { spanText, toMillis } from "../../api/times.ts";
import { useNow } from "../../live/use-now.ts";
import { Age } from "../../parts/age.tsx";
import columns from "../../parts/columns.module.css";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Explanation } from "../../parts/explanation.tsx";
import { Facts } from "../../parts/facts.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { Section } from "../../parts/section.tsx";
import { StateChip } from "../../parts/state-chip.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import { purposeOf, standingOf } from "../runs/run-state.ts";
import { Children } from "./children.tsx";
import { Log, type LogPlace } from "./log.tsx";
import { actionsOf } from "./run-actions.ts";
import { Steps } from "./steps.tsx";
import { useUsualDurations } from "./usual-durations.ts";

/** One run: how far it is, what proved each step, what it wrote, and what people can do with it. */
export function RunPage() {
  const { id = "" } = useParams({ strict: false });
  const { data, error } = useQuery({
    queryKey: topicKey("run", "one", id),
    queryFn: async ({ signal }) => (await clientOf(RunService).getRun({ runId: id }, { signal })).run,
  });
  if (error !== null) return <ErrorNote error={error} />;
  if (!data?.run) return <PageHead title="Run" />;
  return <Shown record={data} run={data.run} />;
}

function Shown({ record, run }: { readonly record: RunRecord; readonly run: Run }) {
  const [place, setPlace] = useState<LogPlace | undefined>();
  const usual = useUsualDurations(run.runId);
  const failed = run.steps.findLast(({ state }) => state === StepStatus_State.FAILED);
  return (
    <>
      <PageHead
        title={`${purposeOf(run)} on ${record.target?.id ?? run.machineId}`}
        aside={
          <>
            <StateChip {...standingOf(run)} />
            <Duration run={run} />
            <code title="The run's id">{run.runId}</code>
          </>
        }
        actions={<ActionBar actions={actionsOf(run)} />}
      />
      <div className={columns.column}>
        <Section title="Steps">
          <Steps
            run={run}
            details={record.stepDetails}
            usual={usual}
            onShowLog={(step, hasFailed) => setPlace({ step, hasFailed })}
          />
        </Section>
        {record.children.length > 0 && (
          <Section title="Runs that it has started">
            <Children runs={record.children} />
          </Section>
        )}
        <Log runId={run.runId} failedStep={failed?.name} place={place} onPlace={setPlace} />
        <div className={columns.columns}>
          <Section title="Why">
            <Explanation kind="run" id={run.runId} />
          </Section>
          <Section title="About it">
            <About record={record} run={run} />
          </Section>
        </div>
      </div>
    </>
  );
}

function Duration({ run }: { readonly run: Run }) {
  const now = useNow();
  const began = toMillis(run.startedAt);
  if (began === undefined) return null;
  return <span>{spanText((toMillis(run.finishedAt) ?? now) - began)}</span>;
}

function About({ record, run }: { readonly record: RunRecord; readonly run: Run }) {
  const { target, parent } = record;
  const params = Object.entries(run.params).map(([name, value]) => `${name}=${harmless(value)}`);
  return (
    <Facts
      facts={[
        { name: "On", value: target && <ThingLink kind={target.kind} id={target.id} withKind /> },
        { name: "Plan", value: run.planId, isCode: true },
        { name: "Made", value: <Age at={run.createdAt} ago /> },
        { name: "By", value: run.initiator },
        { name: "Attempt", value: `${run.attempt}${run.action === "" ? "" : ` (${run.action.replaceAll("_", " ")})`}` },
        { name: "Job", value: run.jobState.replaceAll("_", " ") },
        { name: "Attempt before", value: run.previousRunId && <ThingLink kind="run" id={run.previousRunId} /> },
        { name: "Next attempt", value: run.nextRunId && <ThingLink kind="run" id={run.nextRunId} /> },
        { name: "Started by", value: parent && <ThingLink kind="run" id={parent.runId} withKind /> },
        { name: "Cancel asked", value: run.cancelRequestedAt && <Age at={run.cancelRequestedAt} ago /> },
        { name: "Parameters", value: params.join(", "), isCode: true },
        { name: "Left behind", value: run.residue.map(harmless).join("; ") },
        { name: "Taken over by hand", value: run.manual && `${run.manual.by}: ${harmless(run.manual.comment)}` },
      ]}
    />
  );
}
