import { Button, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { type FormEvent, lazy, Suspense, useState } from "react";
import { type Plan, PlanService, type Step } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { PlanCatalogService } from "../../../../contract/millwright/v1/plan_pb.js";
import { type Action, defineAction } from "../../actions/action.ts";
import { ActionBar } from "../../actions/action-bar.tsx";
import { topicKey } from "../../api/query-keys.ts";
import { clientOf } from "../../api/services.ts";
import { spanText } from "../../api/times.ts";
import { Age } from "../../parts/age.tsx";
import { SmallTable } from "../../parts/blocks.tsx";
import columns from "../../parts/columns.module.css";
import { CopyAs, shellWord } from "../../parts/copy-as.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { Section } from "../../parts/section.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import { useMe } from "../../shell/me.tsx";
import { Preview } from "../machine/start-run/preview.tsx";
import { pathOfList } from "../thing-path.ts";
import classes from "./plan.module.css";
import { fieldsOfKind } from "./plan-draft.ts";

const StartRun = lazy(async () => ({ default: (await import("../machine/start-run/start-run.tsx")).StartRun }));

/** One plan: its steps, what a run of it would do to a machine, and what can be made of it. */
export function PlanPage() {
  const { id: planId = "" } = useParams({ strict: false }) as { readonly id?: string };
  const navigate = useNavigate();
  const { may } = useMe();
  const { data: plan, error } = useQuery({
    queryKey: topicKey("plan", "one", planId),
    queryFn: ({ signal }) => clientOf(PlanService).getPlan({ planId }, { signal }),
  });
  if (error !== null) return <ErrorNote error={error} />;
  if (plan === undefined) return <PageHead title={planId} aside="Reading …" />;
  const call = {
    cli: `millwright plan show ${shellWord(planId)}`,
    method: PlanService.method.getPlan,
    request: { planId },
  };
  const runs = pathOfList("run", `plan_id="${planId}"`);
  return (
    <>
      <PageHead
        title={plan.displayName || planId}
        aside={
          <>
            <code>{planId}</code>
            {plan.builtIn ? <span>built in</span> : <Age at={plan.createdAt} ago />}
            {runs !== undefined && <Link to={runs}>its runs</Link>}
          </>
        }
        actions={
          <>
            {may.has("millwright.v1.PlanCatalogService/CreatePlan") && (
              <Button
                size="xs"
                variant="default"
                onClick={() => void navigate({ to: "/new-plan", search: { from: planId } as never })}
              >
                New plan from it …
              </Button>
            )}
            <ActionBar actions={plan.builtIn ? [] : [deletionOf(plan)]} />
            <CopyAs call={call} />
          </>
        }
      />
      <div className={columns.column}>
        <Section title="Steps">
          <SmallTable
            label="Steps of the plan"
            head={["Step", "Kind", "Takes", { number: "Timeout" }, { number: "Retries" }]}
            rows={plan.steps.map((step) => [
              step.name,
              step.name,
              step.kind.case,
              <Payload key="takes" step={step} />,
              spanText(step.timeoutSeconds * 1_000),
              step.maxRetries,
            ])}
          />
        </Section>
        {may.has("millwright.v1.RunActionsService/PreviewRun") && <Trial planId={planId} />}
      </div>
    </>
  );
}

const deletionOf = ({ planId }: Plan): Action =>
  defineAction({
    label: "Delete",
    says: `Removes plan ${planId}. A plan that a run refers to stays.`,
    method: PlanCatalogService.method.deletePlan,
    request: { planId },
    cli: `millwright plan delete ${shellWord(planId)}`,
    isDangerous: true,
    leadsTo: () => "/plans",
  });

/** What the step was given; scripts lead to their texts. */
function Payload({ step: { kind } }: { readonly step: Step }) {
  const given = (kind.value ?? {}) as Readonly<Record<string, unknown>>;
  const parts = fieldsOfKind(kind.case ?? "").flatMap(({ name, label, type }) => {
    const value = given[name];
    if (name === "scriptRef" && typeof value === "string") return [<ThingLink key={name} kind="script" id={value} />];
    const text = type === "pairs" ? pairsText(value) : type === "flag" ? value === true && "yes" : value;
    return text ? [<span key={name}>{`${label.toLowerCase()} ${text}`}</span>] : [];
  });
  return <span className={classes.payload}>{parts}</span>;
}

const pairsText = (value: unknown): string =>
  Object.entries((value ?? {}) as Readonly<Record<string, string>>)
    .map(([name, each]) => `${name}=${each}`)
    .join(" ");

/** What a run of it would do to a machine: the machine itself notices nothing. */
function Trial({ planId }: { readonly planId: string }) {
  const { may } = useMe();
  const [typed, setTyped] = useState("");
  const [machineId, setMachineId] = useState("");
  const [isStarting, setStarting] = useState(false);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setMachineId(typed.trim());
  };
  return (
    <Section title="What it would do to a machine">
      <form className={classes.trial} onSubmit={submit}>
        <TextInput
          size="xs"
          aria-label="Machine"
          placeholder="Id of a machine"
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
        <Button size="xs" variant="default" type="submit" disabled={typed.trim() === ""}>
          Preview
        </Button>
        {machineId !== "" && may.has("baremetal.v1.RunService/StartRun") && (
          <Button size="xs" onClick={() => setStarting(true)}>
            Start on {machineId} …
          </Button>
        )}
        <Link to="/machines">or select many machines</Link>
      </form>
      {machineId !== "" && <Preview machineId={machineId} planId={planId} />}
      <Suspense fallback={null}>
        {isStarting && <StartRun machineId={machineId} planId={planId} onClose={() => setStarting(false)} />}
      </Suspense>
    </Section>
  );
}
