import type { ServiceImpl } from "@connectrpc/connect";
import type { PlanService } from "../../../contract/baremetal/v1/baremetal_pb.js";
import type { PlanCatalogService } from "../../../contract/millwright/v1/plan_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { checkPlan, createPlan, deletePlan, getPlan, pageAllPlans, pagePlans } from "../../services/run/plans.ts";
import { findMissing, type ReferenceDeps } from "../../services/run/references.ts";
import { required } from "../convert/fields.ts";
import { listRequestFrom, pageOf } from "../convert/listing.ts";
import { callerKey } from "../transport/interceptors.ts";
import { planFrom, planOf } from "./plan-messages.ts";

export const plans = (deps: ServiceDeps): ServiceImpl<typeof PlanService> => ({
  async getPlan({ planId }) {
    return planOf(await getPlan(deps, planId));
  },
  async listPlans({ pageSize, pageToken }) {
    const { items, nextPageToken } = await pageAllPlans(deps, { pageSize, pageToken });
    return { plans: items.map(planOf), nextPageToken };
  },
});

/** @param references Absent on a server that runs nothing: then nobody can tell what a plan misses. */
export const planCatalog = (deps: ServiceDeps, references?: ReferenceDeps): ServiceImpl<typeof PlanCatalogService> => ({
  async createPlan({ plan, validateOnly }, { values }) {
    const made = validateOnly ? checkPlan : createPlan;
    const created = await made(deps, values.get(callerKey), planFrom(required(plan, "plan")));
    return { plan: planOf(created), warnings: references ? await findMissing(deps.db, references, created.plan) : [] };
  },
  async listPlans(request) {
    const page = await pagePlans(deps, listRequestFrom(request, null));
    return { plans: page.items.map(planOf), ...pageOf(page) };
  },
  async deletePlan({ planId }, { values }) {
    await deletePlan(deps, values.get(callerKey), planId);
    return {};
  },
});
