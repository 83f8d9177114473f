import { describeDuration, seconds } from "../../src/kernel/time/duration.ts";
import { FAILURE_CLASSES, type FailureClass, specOf } from "../../src/lifecycles/fleet-node/failure-classes.ts";
import { LACKS, type Lack } from "../../src/lifecycles/fleet-node/lacks.ts";
import { serverSteps } from "../../src/runs/steps/index.ts";
import { FAILURES_OF_CALLS, type StageRow } from "../../src/runs/workflows/fleet/stage-row.ts";
import { FLEET_DECOMMISSION } from "../../src/runs/workflows/fleet/words.ts";
import { planOfWorkflow, roundsOf, type Workflow, waysFrom } from "../../src/runs/workflows/workflow.ts";
import { code, page, pageHead, table } from "./markdown.ts";

interface Described {
  readonly title: string;
  readonly source: string;
  readonly workflow: Workflow;
  readonly rows: Readonly<Record<string, StageRow>>;
}

/** The stages of a workflow of fleet nodes for people: what each calls, when it is done, what it fails with. */
export function stagesPage({ title, source, workflow, rows }: Described): string {
  const deadlines = new Map(planOfWorkflow(workflow, serverSteps).steps.map((step) => [step.name, step]));
  const isCalling = ({ calls }: StageRow) => calls.length > 0;
  return page(
    pageHead(title, source),
    `Workflow ${code(workflow.kind)}: ${workflow.doc}. Runs of it are shown as attempts at one job; a stage that is entered again has another round.`,
    table(
      ["Stage", "What it does", "Done when", "Deadline", "Retries", "Leads to"],
      workflow.stages.map((stage) => [
        code(stage.name),
        rows[stage.name]?.doc ?? "",
        rows[stage.name]?.doneWhen ?? "",
        describeDuration(seconds(deadlines.get(stage.name)?.timeoutSeconds ?? 0)),
        String(deadlines.get(stage.name)?.maxRetries ?? 0),
        waysFrom(workflow, stage.name).map(code).join(", ") || "the end",
      ]),
    ),
    "The deadline is for one attempt; retries follow attempts that failed of something that may pass.",
    "## Calls, compensation and safe stages",
    "A resume goes back to the last safe stage. A cancel undoes what stages have done, the last first; what stays is listed on the run.",
    table(
      ["Stage", "Calls to MAAS", "Compensation", "Safe", "Rounds"],
      workflow.stages.map((stage) => [
        code(stage.name),
        (rows[stage.name]?.calls ?? []).map(code).join("<br>") || "none",
        typeof stage.compensation === "object" ? `stays: ${stage.compensation.stays}` : stage.compensation,
        stage.isSafe === true ? "yes" : "no",
        String(roundsOf(stage)),
      ]),
    ),
    "## What stages fail with",
    `Every stage that calls MAAS may also fail with ${FAILURES_OF_CALLS.map(code).join(", ")}; every stage with ${code("other")}.`,
    table(
      ["Stage", "Failure classes"],
      workflow.stages.map(({ name }) => [
        code(name),
        (rows[name]?.failures ?? []).map(code).join(", ") || "none of its own",
      ]),
    ),
    "## Failure classes",
    "`fleet show` prints one command at a time, which can be run as it is printed. What Millwright itself lacks comes first, as long as it lacks it. After that, the action is printed. [Causes](../reference/causes.md) say what people see to elsewhere.",
    table(
      ["Class", "Trigger", "State of the job", "Comes first, where it is so", "Action"],
      classesOf(Object.values(rows), isCalling).map((name) => {
        const { trigger, jobState, action, lacks = [] } = specOf(name);
        const first = lacks.filter((lack) => appliesTo(lack, workflow)).map(lackText);
        return [code(name), trigger, code(jobState), first.join("<br>"), code(action)];
      }),
    ),
  );
}

const NAMES = {
  ...{ node: "NODE", site: "SITE", machine: "MACHINE" },
  ...{ address: "ADDRESS", bundle: "BUNDLE", allocation: "ALLOCATION" },
};

function lackText(lack: Lack): string {
  const { what, command } = LACKS[lack];
  const line = command(NAMES).replace(/^millwright /, "");
  return line === "" ? what : `${what}: ${code(line)}`;
}

/** An onboarding creates its machine again. */
const appliesTo = (lack: Lack, { kind }: Workflow): boolean =>
  lack !== "machine_to_deploy" || kind === FLEET_DECOMMISSION;

/** In the order of the list. */
function classesOf(rows: readonly StageRow[], isCalling: (row: StageRow) => boolean): readonly FailureClass[] {
  const named = new Set<FailureClass>(
    rows.flatMap((row) => [...row.failures, ...(isCalling(row) ? FAILURES_OF_CALLS : [])]),
  );
  return (Object.keys(FAILURE_CLASSES) as FailureClass[]).filter((name) => named.has(name) || name === "other");
}
