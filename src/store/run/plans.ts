import { z } from "zod";
import type { Json } from "../../kernel/lifecycle.ts";
import type { Plan } from "../../runs/model/plan/plan.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

/** A plan that a caller made. */
export interface StoredPlan extends Plan {
  readonly createdAt: Date;
  readonly createdBy: string;
}

const json: z.ZodType<Json> = z.json();
const stepsSchema = z.array(
  z.object({
    name: z.string(),
    kind: z.string(),
    timeoutSeconds: z.number(),
    maxRetries: z.number(),
    payload: z.record(z.string(), json),
  }),
);

export interface PlanRow {
  readonly plan_id: string;
  readonly display_name: string;
  readonly steps: unknown;
  readonly created_at: Date;
  readonly created_by: string;
}

export const parsePlan = (row: Pick<PlanRow, "plan_id" | "display_name" | "steps">): Plan => ({
  planId: row.plan_id,
  displayName: row.display_name,
  steps: stepsSchema.parse(row.steps),
});

/** The named plans, or all, in the order of their ids. */
export async function listPlans(db: Queryable, query: { readonly ids?: readonly string[] }): Promise<StoredPlan[]> {
  const rows = await db.query<PlanRow>(
    `select plan_id, display_name, steps, created_at, created_by from plans
      where ($1::text[] is null or plan_id = any($1)) order by plan_id`,
    [query.ids ?? null],
  );
  return rows.map((row) => ({ ...parsePlan(row), createdAt: row.created_at, createdBy: row.created_by }));
}

/** The caller holds the plan's lock, and knows that there is none of this id. */
export async function insertPlan(tx: Transaction, plan: Plan, createdBy: string): Promise<void> {
  await tx.execute(`insert into plans (plan_id, display_name, steps, created_by) values ($1, $2, $3, $4)`, [
    plan.planId,
    plan.displayName,
    JSON.stringify(plan.steps),
    createdBy,
  ]);
  failPoint("plans:written");
}

/**
 * Keeps the plan from being deleted until the end of the transaction; any number may do so at once. What was deleted a moment
 * ago is not there any more.
 */
export async function holdPlan(tx: Transaction, planId: string): Promise<void> {
  await tx.query("select 1 from plans where plan_id = $1 for key share", [planId]);
}

/** Waits for those who hold it; then nobody can until the end of the transaction. */
export async function holdPlanAlone(tx: Transaction, planId: string): Promise<void> {
  await tx.query("select 1 from plans where plan_id = $1 for update", [planId]);
}

export async function removePlan(tx: Transaction, planId: string): Promise<void> {
  await tx.execute(`delete from plans where plan_id = $1`, [planId]);
}

/** A run of the plan, the newest; undefined when no run ever referred to it. */
export async function findRunOfPlan(tx: Transaction, planId: string): Promise<string | undefined> {
  const [run] = await tx.query<{ id: string }>(
    `select id from runs where plan_id = $1 order by created_at desc, id limit 1`,
    [planId],
  );
  return run?.id;
}
