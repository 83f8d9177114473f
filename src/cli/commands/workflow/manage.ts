import { UsageError } from "../../client/errors.ts";
import type { Json } from "../../client/proto-json.ts";
import { restCollection } from "../../client/rest-collection.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column, OneThing, Style } from "../../terminal/output.ts";
import { printDone, printList, printOne } from "../../terminal/printing.ts";
import { tableOf } from "../../terminal/table.ts";
import { readPlainDocument } from "../document/document-file.ts";

/** As the API sends it. */
interface Workflow {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly os_family: string;
  readonly architecture: string;
  readonly boot_mode: string;
  readonly boot: { readonly method: string; readonly [name: string]: string | boolean | undefined };
  readonly steps: readonly {
    readonly sequence: number;
    readonly name: string;
    readonly type: string;
    readonly timeout_seconds: number;
    readonly on_failure: string;
    readonly max_retries: number;
  }[];
  readonly next_state: string;
}

const workflows = restCollection<Workflow>("/api/v1/workflows");
const json = (workflow: Workflow): Json => structuredClone(workflow) as unknown as Json;

const columns: readonly Column<Workflow>[] = [
  { title: "ID", cell: ({ id }) => id },
  { title: "NAME", cell: ({ name }) => name },
  { title: "OS", cell: ({ os_family }) => os_family },
  { title: "ARCH", cell: ({ architecture }) => architecture },
  { title: "BOOT", cell: ({ boot_mode }) => boot_mode },
  { title: "METHOD", cell: ({ boot }) => boot.method },
  { title: "LEADS TO", cell: ({ next_state }) => next_state },
];

export async function listWorkflows(
  session: Session,
  { osFamily, arch }: { readonly osFamily?: string; readonly arch?: string },
): Promise<undefined> {
  const items = await workflows.list(session, { os_family: osFamily, architecture: arch });
  await printList(session, { items, columns, json }, "No workflows.");
}

function workflowThing(workflow: Workflow, style: Style): OneThing<Workflow> {
  const { method, ...boot } = workflow.boot;
  const rows = workflow.steps.map((step) =>
    [
      String(step.sequence),
      step.name,
      step.type,
      `${step.timeout_seconds}s`,
      String(step.max_retries),
      step.on_failure,
    ].map((text) => ({
      text,
      tone: undefined,
    })),
  );
  return {
    item: workflow,
    columns,
    json,
    details: [
      ["Workflow", workflow.id, "bold"],
      ["Name", workflow.name],
      ["Description", workflow.description],
      ["For", `${workflow.os_family}, ${workflow.architecture}, ${workflow.boot_mode}`],
      ["Boots by", method],
      ...Object.entries(boot).map(([name, value]) => [name, String(value ?? "")] as const),
      ["Leads to", workflow.next_state],
    ],
    sections:
      rows.length === 0
        ? []
        : [{ title: "Steps", body: tableOf(["NO", "NAME", "TYPE", "TIMEOUT", "RETRIES", "ON FAILURE"], rows, style) }],
  };
}

export async function showWorkflow(session: Session, id: string): Promise<undefined> {
  await printOne(session, workflowThing(await workflows.get(session, id), session.style()));
}

/** What `show -o yaml` prints can be sent again: the times in it are the server's own. */
async function readWorkflow(session: Session, file: string): Promise<Readonly<Record<string, Json>>> {
  const document = await readPlainDocument(session, file);
  if (typeof document !== "object" || document === null || Array.isArray(document))
    throw new UsageError("--file: a workflow is wanted: name, boot, …");
  const { created_at: _, updated_at: __, ...said } = document;
  return said;
}

export async function createWorkflow(session: Session, { file }: { readonly file: string }): Promise<undefined> {
  const body = await readWorkflow(session, file);
  const { id } = await workflows.create(session, body);
  await printDone(session, `Workflow ${id} created.`, { id });
}

export async function replaceWorkflow(
  session: Session,
  id: string,
  { file }: { readonly file: string },
): Promise<undefined> {
  const { id: ownId, ...body } = await readWorkflow(session, file);
  if (ownId !== undefined && ownId !== id)
    throw new UsageError(`--file: it is of ${String(ownId)}, and ${id} is to be replaced`);
  await workflows.change(session, id, "PUT", body);
  await printDone(session, `Workflow ${id} replaced.`, { id });
}

export async function deleteWorkflow(session: Session, id: string, { yes }: ConfirmOptions): Promise<undefined> {
  const what = `Delete workflow ${id}? Nodes that have it install nothing until they are given another.`;
  if (!yes) await confirm(session, { what });
  await workflows.remove(session, id);
  await printDone(session, `Workflow ${id} deleted.`, { id });
}
