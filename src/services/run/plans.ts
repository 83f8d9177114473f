import { isDeepStrictEqual } from "node:util";
import { AppError } from "../../kernel/errors.ts";
import { type Plan, type PlanInput, parsePlanId, validatePlan } from "../../runs/model/plan/plan.ts";
import { BUILT_IN_PLANS } from "../../runs/plans/built-in.ts";
import { allSteps } from "../../runs/steps/index.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { Queryable, Transaction } from "../../store/postgres/database.ts";
import { planListing } from "../../store/run/plan-list.ts";
import { findRunOfPlan, holdPlan, holdPlanAlone, insertPlan, listPlans, removePlan } from "../../store/run/plans.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { actorOf } from "../call/initiator.ts";
import { type ListPage, type ListRequest, pageList } from "../call/listing.ts";
import { audit } from "../catalog/audit.ts";

export type { Plan, PlanInput, Step, StepInput } from "../../runs/model/plan/plan.ts";

/** A plan, and where it comes from. */
export interface PlanRecord {
  readonly plan: Plan;
  readonly builtIn: boolean;
  /** Null for built-in plans. */
  readonly createdAt: Date | null;
}

const KIND = "plan";
const BUILT_IN = new Map(BUILT_IN_PLANS.map((plan) => [plan.planId, plan]));

async function viewPlan(db: Queryable, id: string): Promise<PlanRecord> {
  const planId = parsePlanId(id, "plan_id");
  const builtIn = BUILT_IN.get(planId);
  if (builtIn) return { plan: builtIn, builtIn: true, createdAt: null };
  const [stored] = await listPlans(db, { ids: [planId] });
  if (!stored) throw unknownPlan(planId);
  const { createdAt, createdBy: _, ...plan } = stored;
  return { plan, builtIn: false, createdAt };
}

/** The plan alone, as a run freezes it. */
export const findPlan = async (db: Queryable, id: string): Promise<Plan> => (await viewPlan(db, id)).plan;

/** The same for a run that is about to refer to it: it cannot be deleted before the run is on record. */
export async function findPlanForRun(tx: Transaction, id: string): Promise<Plan> {
  const planId = parsePlanId(id, "plan_id");
  if (!BUILT_IN.has(planId)) await holdPlan(tx, planId);
  return findPlan(tx, planId);
}

export const getPlan = ({ db }: ServiceDeps, id: string): Promise<PlanRecord> => viewPlan(db, id);

/** All that fit into one answer, unless fewer are asked for. */
const USUAL_PAGE = 1_000;

/** Built-in and others; in the order of their ids unless the request says. */
export const pagePlans = (deps: ServiceDeps, request: ListRequest): Promise<ListPage<PlanRecord>> =>
  pageList(deps, planListing, request, {
    show: ({ builtIn, createdAt, ...plan }) => ({ plan, builtIn, createdAt }),
  });

/** The same for clients of the contract of plans, which asks for nothing but pages. */
export const pageAllPlans = (
  deps: ServiceDeps,
  { pageSize, pageToken }: { readonly pageSize: number; readonly pageToken: string },
): Promise<ListPage<PlanRecord>> =>
  pagePlans(deps, { filter: "", pageSize: pageSize === 0 ? USUAL_PAGE : pageSize, pageToken, reach: undefined });

/** Keeps a plan under its id. The same plan again is harmless; another one under the same id is refused. */
export async function createPlan(deps: ServiceDeps, caller: Caller, input: PlanInput): Promise<PlanRecord> {
  // By the kinds themselves: each has defaults of its own, and knows more of its payload than what it consists of.
  const plan = validatePlan(input, allSteps);
  return deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: KIND, id: plan.planId }]);
    const known = await findSame(tx, plan);
    if (known) return known;
    await insertPlan(tx, plan, actorOf(caller));
    const data = { display_name: plan.displayName, steps: plan.steps.map(({ name, kind }) => ({ name, kind })) };
    await audit(tx, caller, { kind: KIND, id: plan.planId, type: "created", data });
    return viewPlan(tx, plan.planId);
  });
}

/** Refuses what `createPlan` would refuse now, and keeps nothing. */
export async function checkPlan({ db }: ServiceDeps, _: Caller, input: PlanInput): Promise<PlanRecord> {
  const plan = validatePlan(input, allSteps);
  return (await findSame(db, plan)) ?? { plan, builtIn: false, createdAt: null };
}

/** The plan of that id, if it is this one; undefined where there is none. */
async function findSame(db: Queryable, plan: Plan): Promise<PlanRecord | undefined> {
  const known = await viewPlan(db, plan.planId).catch(ifUnknown);
  if (known === undefined || isDeepStrictEqual(known.plan, plan)) return known;
  throw new AppError(
    "already_exists",
    `plan_id: ${plan.planId} already exists with different steps; plans are immutable, choose a new id`,
    { field: "plan.plan_id", next: `millwright plan show ${plan.planId}` },
  );
}

const ifUnknown = (error: unknown): undefined => {
  if (!(error instanceof AppError) || error.kind !== "not_found") throw error;
};

/** Removes a plan that no run refers to. */
export async function deletePlan(deps: ServiceDeps, caller: Caller, id: string): Promise<void> {
  const planId = parsePlanId(id, "plan_id");
  if (BUILT_IN.has(planId)) {
    throw new AppError("failed_precondition", `plan ${planId} is built in, and stays`, { field: "plan_id" });
  }
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: KIND, id: planId }]);
    const [known] = await listPlans(tx, { ids: [planId] });
    if (!known) throw unknownPlan(planId);
    // A run that is being started holds the plan: only after it is there can we tell that there is none.
    await holdPlanAlone(tx, planId);
    const run = await findRunOfPlan(tx, planId);
    if (run !== undefined) {
      throw new AppError("failed_precondition", `run ${run} refers to plan ${planId}, so it stays`, {
        field: "plan_id",
        next: `millwright run show ${run}`,
      });
    }
    await removePlan(tx, planId);
    await audit(tx, caller, { kind: KIND, id: planId, type: "deleted", data: {} });
  });
}

const unknownPlan = (planId: string): AppError =>
  new AppError("not_found", `plan ${planId} does not exist`, { field: "plan_id", next: "millwright plan list" });
