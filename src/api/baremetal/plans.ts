import type { ServiceImpl } from "@connectrpc/connect";
import type { PlanService } from "../../../contract/baremetal/v1/baremetal_pb.js";
import type { PlanCatalogService } from "../../../contract/millwright/v1/plan_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { createPlan, deletePlan, getPlan, pagePlans } from "../../services/run/plans.ts";
import { required } from "../convert/fields.ts";
import { callerKey } from "../transport/interceptors.ts";
import { planFrom, planOf } from "./plan-messages.ts";

export const plans = (deps: ServiceDeps): ServiceImpl<typeof PlanService> => ({
  async getPlan({ planId }) {
    return planOf(await getPlan(deps, planId));
  },
  async listPlans({ pageSize, pageToken }) {
    const { items, nextPageToken } = await pagePlans(deps, { pageSize, pageToken });
    return { plans: items.map(planOf), nextPageToken };
  },
});

export const planCatalog = (deps: ServiceDeps): ServiceImpl<typeof PlanCatalogService> => ({
  async createPlan({ plan }, { values }) {
    const created = await createPlan(deps, values.get(callerKey), planFrom(required(plan, "plan")));
    return { plan: planOf(created) };
  },
  async deletePlan({ planId }, { values }) {
    await deletePlan(deps, values.get(callerKey), planId);
    return {};
  },
});
