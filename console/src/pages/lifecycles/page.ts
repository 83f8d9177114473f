import { definePage } from "../page.ts";

export const lifecyclesPage = definePage({
  path: "/lifecycles",
  title: "Lifecycles",
  nav: { group: "work" },
  needs: "millwright.v1.LifecycleService/ListLifecycles",
  load: async () => (await import("./lifecycles.tsx")).Lifecycles,
});

export const lifecyclePage = definePage({
  path: "/lifecycles/$kind",
  title: "Lifecycle",
  needs: "millwright.v1.LifecycleService/GetLifecycle",
  load: async () => (await import("./lifecycle.tsx")).LifecyclePage,
});
