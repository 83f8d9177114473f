import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { type Machine, MachineService } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { ActionBar } from "../../actions/action-bar.tsx";
import { useLifecycles } from "../../api/lifecycles.ts";
import { topicKey } from "../../api/query-keys.ts";
import { clientOf } from "../../api/services.ts";
import { Age } from "../../parts/age.tsx";
import columns from "../../parts/columns.module.css";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Explanation } from "../../parts/explanation.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { Section } from "../../parts/section.tsx";
import { StateChip } from "../../parts/state-chip.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import { useMe } from "../../shell/me.tsx";
import { Story } from "../../story/story.tsx";
import { standingOf } from "../machines/machine-state.ts";
import { Conditions } from "./conditions.tsx";
import { LifecyclePanels } from "./lifecycles/lifecycle-panels.tsx";
import { useMachineThings } from "./lifecycles/use-machine-things.ts";
import { actionsOf } from "./machine-actions.ts";
import { MachineFacts } from "./machine-facts.tsx";
import { MachineRuns } from "./machine-runs.tsx";

const StartRun = lazy(async () => ({ default: (await import("./start-run/start-run.tsx")).StartRun }));

/** One machine: how it is and why, what was read from it, what was done with it, and what can be. */
export function MachinePage() {
  const { id = "" } = useParams({ strict: false });
  const { data, error } = useQuery({
    queryKey: topicKey("machine", "one", id),
    queryFn: ({ signal }) => clientOf(MachineService).getMachine({ machineId: id }, { signal }),
  });
  if (error !== null) return <ErrorNote error={error} />;
  if (data === undefined) return <PageHead title={id} />;
  return <Shown machine={data} />;
}

function Shown({ machine }: { readonly machine: Machine }) {
  const { machineId, spec, status } = machine;
  const { data: lifecycles } = useLifecycles();
  const standing = standingOf(machine);
  const things = useMachineThings(machine);
  const actions = actionsOf(machine, lifecycles?.get("machine"));
  return (
    <>
      <PageHead
        title={machineId}
        aside={
          <>
            <StateChip {...standing} />
            {standing.since && (
              <span>
                for <Age at={standing.since} />
              </span>
            )}
            {spec?.rack && (
              <span>
                <ThingLink kind="rack" id={spec.rack} /> {spec.slot !== "" && `· slot ${spec.slot}`}
              </span>
            )}
            {status?.banners.map((banner) => (
              <strong key={banner}>{banner}</strong>
            ))}
          </>
        }
        actions={
          <>
            <RunButton machineId={machineId} isSecondary={standing.needsPerson || standing.isFailing} />
            <ActionBar actions={actions} shown={actions[0]?.isDangerous ? 0 : 1} isSecondary />
          </>
        }
      />
      <LifecyclePanels things={things} />
      <div className={columns.columns}>
        <div className={columns.column}>
          <Section title="Why">
            <Explanation kind="machine" id={machineId} />
          </Section>
          <Section title="Conditions">
            <Conditions conditions={status?.conditions ?? []} />
          </Section>
          <MachineRuns machineId={machineId} />
        </div>
        <div className={columns.column}>
          <MachineFacts machine={machine} />
          <Section title="Story">
            <Story kind="machine" id={machineId} others={things.slice(1)} />
          </Section>
        </div>
      </div>
    </>
  );
}

interface RunButtonProps {
  readonly machineId: string;
  /** Something else helps more. */
  readonly isSecondary: boolean;
}

function RunButton({ machineId, isSecondary }: RunButtonProps) {
  const { may } = useMe();
  const [isOpen, setOpen] = useState(false);
  if (!may.has("baremetal.v1.RunService/StartRun")) return null;
  return (
    <>
      <Button size="xs" variant={isSecondary ? "default" : "filled"} onClick={() => setOpen(true)}>
        Run a plan …
      </Button>
      <Suspense fallback={null}>{isOpen && <StartRun machineId={machineId} onClose={() => setOpen(false)} />}</Suspense>
    </>
  );
}
