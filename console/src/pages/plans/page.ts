import { definePage } from "../page.ts";

export const plansPage = definePage({
  path: "/plans",
  title: "Plans",
  nav: { group: "work" },
  needs: "millwright.v1.PlanCatalogService/ListPlans",
  load: async () => (await import("./plans.tsx")).Plans,
});

export const newPlanPage = definePage({
  path: "/new-plan",
  title: "New plan",
  needs: "millwright.v1.PlanCatalogService/CreatePlan",
  load: async () => (await import("./new-plan.tsx")).NewPlan,
});

export const planPage = definePage({
  path: "/plans/$id",
  title: "Plan",
  thing: "plan",
  needs: "baremetal.v1.PlanService/GetPlan",
  load: async () => (await import("./plan.tsx")).PlanPage,
});
