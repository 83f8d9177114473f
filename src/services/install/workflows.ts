import { randomUUID } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Workflow } from "../../lifecycles/install/workflow.ts";
import {
  listWorkflows,
  putWorkflow,
  retireWorkflow,
  type WorkflowQuery,
  type WorkflowRecord,
} from "../../store/install/workflows.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { actorOf } from "../call/initiator.ts";
import { audit } from "../catalog/audit.ts";
import { readWorkflow, type WorkflowInput } from "./workflow-input.ts";

export { OS_FAMILIES, WORKFLOW_BOOT_MODES, WORKFLOW_NEXT_STATES } from "../../lifecycles/install/workflow.ts";
export {
  bootInputSchema,
  stepInputSchema,
  workflowBootSchema,
  workflowStepSchema,
} from "../../store/install/workflow-schema.ts";
export type { WorkflowRecord } from "../../store/install/workflows.ts";

const KIND = "install_workflow";
/** Names are unique among the workflows that are offered: a writer locks them all. */
const NAMES = { kind: KIND, id: "(names)" };

const unknownWorkflow = (id: string): AppError =>
  new AppError("not_found", `Workflow not found: ${id.slice(0, 80)}`, {
    field: "workflow_id",
    next: "millwright workflow list",
  });

/** One that is still offered. */
export async function findWorkflow(db: Queryable, id: string): Promise<WorkflowRecord> {
  const [workflow] = await listWorkflows(db, { ids: [id], activeOnly: true });
  if (!workflow) throw unknownWorkflow(id);
  return workflow;
}

export const getWorkflow = ({ db }: ServiceDeps, id: string): Promise<WorkflowRecord> => findWorkflow(db, id);
export const pageWorkflows = ({ db }: ServiceDeps, query: WorkflowQuery): Promise<WorkflowRecord[]> =>
  listWorkflows(db, { ...query, activeOnly: true });

/** Without an id one is made up. */
export const createWorkflow = (
  deps: ServiceDeps,
  caller: Caller,
  { id, ...input }: WorkflowInput & { readonly id?: string | undefined },
): Promise<WorkflowRecord> => write(deps, caller, { ...readWorkflow(input), id: id ?? randomUUID() }, "created");

export const replaceWorkflow = (
  deps: ServiceDeps,
  caller: Caller,
  id: string,
  input: WorkflowInput,
): Promise<WorkflowRecord> => write(deps, caller, { ...readWorkflow(input), id }, "changed");

async function write(
  deps: ServiceDeps,
  caller: Caller,
  workflow: Workflow,
  type: "created" | "changed",
): Promise<WorkflowRecord> {
  return deps.db.transaction(async (tx) => {
    await lockThings(tx, [NAMES, { kind: KIND, id: workflow.id }]);
    const [known] = await listWorkflows(tx, { ids: [workflow.id] });
    if (type === "changed" && known?.isActive !== true) throw unknownWorkflow(workflow.id);
    if (type === "created" && known) {
      throw new AppError("already_exists", `Workflow with id '${workflow.id}' already exists`, { field: "id" });
    }
    const [taken] = await listWorkflows(tx, { name: workflow.name, activeOnly: true });
    if (taken && taken.id !== workflow.id) {
      throw new AppError("already_exists", `Workflow with name '${workflow.name}' already exists`, { field: "name" });
    }
    await putWorkflow(tx, workflow, actorOf(caller));
    const data = { ...workflow, steps: workflow.steps.map((step) => ({ ...step })) } as unknown as JsonObject;
    await audit(tx, caller, { kind: KIND, id: workflow.id, type, data });
    return findWorkflow(tx, workflow.id);
  });
}

/** It is not offered any more; nodes that have it keep it. */
export async function deleteWorkflow(deps: ServiceDeps, caller: Caller, id: string): Promise<void> {
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [NAMES, { kind: KIND, id }]);
    const workflow = await findWorkflow(tx, id);
    await retireWorkflow(tx, id);
    await audit(tx, caller, { kind: KIND, id, type: "deleted", data: { name: workflow.name } });
  });
}
