import { Button, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useEffect, useState } from "react";
import { PlanService } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { PlanCatalogService } from "../../../../contract/millwright/v1/plan_pb.js";
import { callMethod } from "../../api/call-method.ts";
import { shownError } from "../../api/errors.ts";
import { topicKey } from "../../api/query-keys.ts";
import { clientOf } from "../../api/services.ts";
import columns from "../../parts/columns.module.css";
import { CopyAs } from "../../parts/copy-as.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { Section } from "../../parts/section.tsx";
import { pathOfThing } from "../thing-path.ts";
import classes from "./new-plan.module.css";
import { draftOf, emptyStep, moved, type PlanDraft, planOf, type StepDraft, stepOfField } from "./plan-draft.ts";
import { StepForm } from "./step-form.tsx";

const CHECK_AFTER_MS = 400;

/** A plan of one's own, from nothing or from another plan. The server checks it while it is written. */
export function NewPlan() {
  const { from = "" } = useSearch({ strict: false }) as { readonly from?: string };
  const [draft, setDraft] = useState<PlanDraft>({ planId: "", displayName: "", steps: [emptyStep()] });
  const source = useQuery({
    queryKey: topicKey("plan", "one", from),
    queryFn: ({ signal }) => clientOf(PlanService).getPlan({ planId: from }, { signal }),
    enabled: from !== "",
  });
  useEffect(() => {
    if (source.data) setDraft(draftOf(source.data));
  }, [source.data]);
  const check = useCheck(draft);
  const navigate = useNavigate();
  const request = { plan: planOf(draft) };
  const creating = useMutation({
    mutationFn: () => callMethod(PlanCatalogService.method.createPlan, request),
    onSuccess: ({ plan }) => {
      const to = pathOfThing("plan", plan?.planId ?? "");
      if (to !== undefined) void navigate({ href: to });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    creating.mutate();
  };
  const wrongStep = check.error === null ? -1 : stepOfField(shownError(check.error).field);
  const setSteps = (steps: readonly StepDraft[]) => setDraft({ ...draft, steps });
  return (
    <form onSubmit={submit} className={columns.column}>
      <PageHead
        title={from === "" ? "New plan" : `New plan, from ${from}`}
        actions={
          <>
            <CopyAs call={{ cli: "", method: PlanCatalogService.method.createPlan, request }} />
            <Button type="submit" size="xs" loading={creating.isPending} disabled={check.error !== null}>
              Create the plan
            </Button>
          </>
        }
      />
      {source.error !== null && <ErrorNote error={source.error} />}
      {creating.error !== null && <ErrorNote error={creating.error} />}
      <Section title="Plan">
        <div className={classes.names}>
          <TextInput
            label="Id"
            description="Letters, digits and . _ / -. A plan never changes: a changed one takes a new id."
            required
            data-autofocus
            value={draft.planId}
            onChange={(event) => setDraft({ ...draft, planId: event.currentTarget.value })}
          />
          <TextInput
            label="Name"
            description="For people"
            value={draft.displayName}
            onChange={(event) => setDraft({ ...draft, displayName: event.currentTarget.value })}
          />
        </div>
      </Section>
      <Section title="Steps">
        <ol className={classes.steps}>
          {draft.steps.map((step, at) => (
            <StepForm
              key={step.key}
              step={step}
              number={at + 1}
              isWrong={at === wrongStep}
              onChange={(changed) => setSteps(draft.steps.with(at, changed))}
              onMove={(by) => setSteps(moved(draft.steps, at, at + by))}
              onRemove={() => setSteps(draft.steps.toSpliced(at, 1))}
            />
          ))}
        </ol>
        <Button size="xs" variant="default" onClick={() => setSteps([...draft.steps, emptyStep()])}>
          Add a step
        </Button>
      </Section>
      <Verdict check={check} />
    </form>
  );
}

interface Check {
  readonly error: unknown;
  /** Undefined while the server is asked. */
  readonly warnings: readonly string[] | undefined;
}

/** What the server says of the plan as it is now: nothing is kept by asking. */
function useCheck(draft: PlanDraft): Check {
  const [settled] = useDebouncedValue(draft, CHECK_AFTER_MS);
  const { data, error } = useQuery({
    queryKey: ["plan", "check", undefined, settled],
    queryFn: ({ signal }) =>
      clientOf(PlanCatalogService).createPlan({ plan: planOf(settled), validateOnly: true }, { signal }),
    enabled: settled.planId.trim() !== "",
    retry: false,
    staleTime: 10_000,
  });
  return settled === draft ? { error, warnings: data?.warnings } : { error: null, warnings: undefined };
}

function Verdict({ check: { error, warnings } }: { readonly check: Check }) {
  return (
    <div role="status" className={classes.verdict}>
      {error !== null && <ErrorNote error={error} />}
      {warnings?.length === 0 && <p>The server takes this plan.</p>}
      {warnings !== undefined && warnings.length > 0 && (
        <>
          <p>The server takes this plan. What it names and is not there yet:</p>
          <ul>
            {warnings.map((warning) => (
              <li key={warning}>{warning}</li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
