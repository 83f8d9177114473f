import { definePage } from "../page.ts";

export const overviewPage = definePage({
  path: "/",
  title: "Overview",
  nav: { group: "fleet" },
  load: async () => (await import("./overview.tsx")).Overview,
});
