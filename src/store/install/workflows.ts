import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { ARCHITECTURES } from "../../lifecycles/install/install.ts";
import {
  OS_FAMILIES,
  WORKFLOW_BOOT_MODES,
  WORKFLOW_NEXT_STATES,
  type Workflow,
  type WorkflowBoot,
} from "../../lifecycles/install/workflow.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { workflowBootSchema, workflowStepSchema } from "./workflow-schema.ts";

/** A workflow with what the database says of it. */
export interface WorkflowRecord extends Workflow {
  /** False once it was deleted: nodes that have it still find what it was. */
  readonly isActive: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

const rowSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string(),
    os_family: z.enum(OS_FAMILIES),
    architecture: z.enum(ARCHITECTURES),
    boot_mode: z.enum(WORKFLOW_BOOT_MODES),
    install_method: z.string(),
    boot: z.record(z.string(), z.unknown()),
    boot_extra: z.object({ for: z.unknown().optional() }).catchall(z.unknown()),
    steps: z.array(workflowStepSchema),
    next_state: z.enum(WORKFLOW_NEXT_STATES),
    is_active: z.boolean(),
    created_at: z.date(),
    updated_at: z.date(),
  })
  .transform(
    (row): WorkflowRecord => ({
      id: row.id,
      name: row.name,
      description: row.description,
      osFamily: row.os_family,
      architecture: row.architecture,
      bootMode: row.boot_mode,
      boot: workflowBootSchema.parse({ ...row.boot, method: row.install_method, ...extraOf(row) }),
      steps: row.steps,
      nextState: row.next_state,
      isActive: row.is_active,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
    }),
  );

/** What a version that knows no extras wrote in the place of another boot has none. */
function extraOf({ boot, boot_extra: { for: of, ...extra } }: { boot: unknown; boot_extra: Record<string, unknown> }) {
  return isDeepStrictEqual(boot, of) ? extra : {};
}

/** In columns that versions before this one can read: whatever runs our environment boots a kernel to them. */
function columnsOf({ method, ...boot }: WorkflowBoot): { method: string; boot: object; extra: object } {
  const plain = { method, boot, extra: {} };
  if (method !== "clone" && !("environment" in boot && boot.environment === true)) return plain;
  const { kernel_url, initrd_url, cmdline, ...extra } = boot as Extract<WorkflowBoot, { kernel_url: string }>;
  const kept = { kernel_url, ...(initrd_url !== undefined && { initrd_url }), cmdline };
  return { method: "kernel", boot: kept, extra: { ...extra, method, for: kept } };
}

export interface WorkflowQuery {
  readonly ids?: readonly string[];
  readonly name?: string;
  readonly osFamily?: string;
  readonly architecture?: string;
  readonly activeOnly?: boolean;
}

/** In the order of their names. */
export async function listWorkflows(db: Queryable, query: WorkflowQuery = {}): Promise<WorkflowRecord[]> {
  const rows = await db.query(
    `select * from install_workflows
      where ($1::text[] is null or id = any($1)) and ($2::text is null or name = $2)
        and ($3::text is null or os_family = $3) and ($4::text is null or architecture = $4) and (is_active or not $5)
      order by name, id`,
    [
      query.ids ?? null,
      query.name ?? null,
      query.osFamily ?? null,
      query.architecture ?? null,
      query.activeOnly ?? false,
    ],
  );
  return rows.map((row) => rowSchema.parse(row));
}

/** Writes the workflow, new or changed; the caller holds its lock and has seen that its name is free. */
export async function putWorkflow(tx: Transaction, workflow: Workflow, createdBy: string): Promise<void> {
  const { method, boot, extra } = columnsOf(workflow.boot);
  await tx.execute(
    `insert into install_workflows
       (id, name, description, os_family, architecture, boot_mode, install_method, boot, boot_extra, steps, next_state, created_by)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     on conflict (id) do update set name = excluded.name, description = excluded.description, os_family = excluded.os_family,
       architecture = excluded.architecture, boot_mode = excluded.boot_mode, install_method = excluded.install_method,
       boot = excluded.boot, boot_extra = excluded.boot_extra, steps = excluded.steps, next_state = excluded.next_state, is_active = true, updated_at = now()`,
    [
      workflow.id,
      workflow.name,
      workflow.description,
      workflow.osFamily,
      workflow.architecture,
      workflow.bootMode,
      method,
      JSON.stringify(boot),
      JSON.stringify(extra),
      JSON.stringify(workflow.steps),
      workflow.nextState,
      createdBy,
    ],
  );
  failPoint("install-workflows:written");
}

/** It is not offered any more, and its name is free. Returns whether there was one. */
export async function retireWorkflow(tx: Transaction, id: string): Promise<boolean> {
  const changed = await tx.execute(
    `update install_workflows set is_active = false, updated_at = now() where id = $1 and is_active`,
    [id],
  );
  failPoint("install-workflows:retired");
  return changed > 0;
}
