import {
  type Plan,
  PlanSchema,
  PlanService,
  type Step,
  StepSchema,
} from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { PlanCatalogService } from "../../../../contract/millwright/v1/plan_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column, OneThing, Style } from "../../terminal/output.ts";
import { printable } from "../../terminal/printable.ts";
import { printDone, printLine, printList, printOne } from "../../terminal/printing.ts";
import { tableOf } from "../../terminal/table.ts";
import { clockTime, isoTime } from "../../terminal/times.ts";
import { readDocument } from "../document/document-file.ts";
import type { ListOptions } from "../options/list-options.ts";
import { readList } from "../options/read-list.ts";

const planJson = (plan: Plan) => jsonOf(PlanSchema, plan);
const columns: readonly Column<Plan>[] = [
  { title: "ID", cell: ({ planId }) => planId },
  { title: "NAME", cell: ({ displayName }) => displayName },
  { title: "BUILT IN", cell: ({ builtIn }) => (builtIn ? "yes" : "no") },
  { title: "CREATED", cell: (plan) => clockTime(plan.createdAt), plain: (plan) => isoTime(plan.createdAt) },
  { title: "STEPS", cell: ({ steps }) => steps.map(({ name }) => name).join(" → ") },
];

/** The payload as it stands in files, on one line. */
export function payloadText(step: Step): string {
  const whole = jsonOf(StepSchema, step) as { readonly [field: string]: unknown };
  const payload = whole[step.kind.case ?? ""];
  if (typeof payload !== "object" || payload === null) return "";
  const isGiven = (value: unknown) =>
    value !== "" && value !== null && !(typeof value === "object" && Object.keys(value).length === 0);
  return Object.entries(payload)
    .filter(([, value]) => isGiven(value))
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
}

function planThing(plan: Plan, style: Style): OneThing<Plan> {
  const rows = plan.steps.map((step) =>
    [step.name, step.kind.case ?? "", `${step.timeoutSeconds}s`, String(step.maxRetries ?? 0), payloadText(step)].map(
      (text) => ({
        text,
        tone: undefined,
      }),
    ),
  );
  return {
    item: plan,
    columns,
    json: planJson,
    details: [
      ["Plan", plan.planId, "bold"],
      ["Name", plan.displayName],
      ["Built in", plan.builtIn ? "yes" : "no"],
      ["Created", clockTime(plan.createdAt)],
    ],
    sections: [{ title: "Steps", body: tableOf(["NAME", "KIND", "TIMEOUT", "RETRIES", "PAYLOAD"], rows, style) }],
  };
}

export async function listPlans(session: Session, options: ListOptions): Promise<undefined> {
  const client = await session.client(PlanCatalogService);
  const items = await readList(
    session,
    options,
    (query) => client.listPlans(query, { signal: session.signal }),
    ({ plans }) => plans,
  );
  await printList(session, { items, columns, json: planJson }, "No plans.");
}

export async function showPlan(session: Session, planId: string): Promise<undefined> {
  const client = await session.client(PlanService);
  const plan = await client.getPlan({ planId }, { signal: session.signal });
  await printOne(session, planThing(plan, session.style()));
}

export async function createPlan(session: Session, { file }: { readonly file: string }): Promise<undefined> {
  const plan = await readDocument(session, file, PlanSchema);
  const client = await session.client(PlanCatalogService);
  const { plan: created, warnings } = await client.createPlan({ plan }, { signal: session.signal });
  if (!created) throw new Error("the server answered without the plan");
  for (const warning of warnings) printLine(session.terminal.stderr, `warning: ${printable(warning)}`);
  const style = session.style();
  const steps = created.steps.length === 1 ? "1 step" : `${created.steps.length} steps`;
  if (style.format === "table") printLine(session.terminal.stdout, `Plan ${created.planId} created, with ${steps}.`);
  else await printOne(session, planThing(created, style));
}

export async function deletePlan(session: Session, planId: string, { yes }: ConfirmOptions): Promise<undefined> {
  if (!yes) await confirm(session, { what: `Delete plan ${planId}?` });
  const client = await session.client(PlanCatalogService);
  await client.deletePlan({ planId }, { signal: session.signal });
  await printDone(session, `Plan ${planId} deleted.`, { plan_id: planId });
}
