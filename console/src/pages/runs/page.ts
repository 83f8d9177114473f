import { definePage } from "../page.ts";

export const runsPage = definePage({
  path: "/runs",
  title: "Runs",
  nav: { group: "work" },
  lists: "run",
  needs: "millwright.v1.RunService/ListRuns",
  load: async () => (await import("./runs.tsx")).Runs,
});
