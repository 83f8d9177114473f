import { BUILT_IN_PLANS } from "../../runs/plans/built-in.ts";
import { FLAG, flagSql } from "../device/bmc-device-fields.ts";
import { defineFields } from "../postgres/list-fields.ts";
import { createListing } from "../postgres/listing.ts";
import { type PlanRow, parsePlan, type StoredPlan } from "./plans.ts";

/** A plan of either origin. */
export interface ListedPlan extends Omit<StoredPlan, "createdAt" | "createdBy"> {
  readonly builtIn: boolean;
  /** Null for built-in plans. */
  readonly createdAt: Date | null;
}

interface ListedPlanRow extends Omit<PlanRow, "created_at" | "created_by"> {
  readonly id: string;
  readonly built_in: boolean;
  readonly created_at: Date | null;
}

const ofSteps = (field: "name" | "kind") =>
  `array(select step ->> '${field}' from jsonb_array_elements(t.steps) as step)`;

// biome-ignore format: a table is read by its columns
const FIELDS = defineFields<ListedPlan>()({
  plan_id:      { type: "text", sql: "t.id", sort: "set", doc: "The plan's id.", of: ({ planId }) => planId },
  display_name: { type: "text", sql: "t.display_name", sort: "set", doc: "What people call it.", of: ({ displayName }) => displayName },
  built_in:     { type: FLAG, sql: flagSql("t.built_in"), doc: "It comes with the server.", of: ({ builtIn }) => String(builtIn) },
  step:         { type: "tags", sql: ofSteps("name"), doc: "The name of one of its steps.", of: ({ steps }) => steps.map(({ name }) => name) },
  step_kind:    { type: "tags", sql: ofSteps("kind"), doc: "The kind of one of its steps.", of: ({ steps }) => steps.map(({ kind }) => kind) },
  created_at:   { type: "time", sql: "t.created_at", sort: "nullable", doc: "When it was created; empty for a built-in plan.", of: ({ createdAt }) => createdAt },
});

export type PlanField = keyof typeof FIELDS & string;

/** Built-in plans are code. The database gets them with each query, so that both origins are one list with one order. */
const BUILT_IN = `'${JSON.stringify(BUILT_IN_PLANS).replaceAll("'", "''")}'::jsonb`;

const ALL_PLANS = `(select plan_id as id, plan_id, display_name, steps, created_at, false as built_in from plans
  union all
  select plan ->> 'planId' collate "C", plan ->> 'planId', plan ->> 'displayName', plan -> 'steps', null, true
    from jsonb_array_elements(${BUILT_IN}) as plan)`;

export const planListing = createListing<PlanField, ListedPlan, ListedPlanRow>({
  name: "plans",
  fields: FIELDS,
  id: "plan_id",
  columns: "t.id, t.plan_id, t.display_name, t.steps, t.created_at, t.built_in",
  from: `${ALL_PLANS} t`,
  parse: (row) => ({ ...parsePlan(row), createdAt: row.created_at, builtIn: row.built_in }),
});
