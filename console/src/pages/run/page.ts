import { definePage } from "../page.ts";

export const runPage = definePage({
  path: "/runs/$id",
  title: "Run",
  thing: "run",
  needs: "millwright.v1.RunService/GetRun",
  load: async () => (await import("./run.tsx")).RunPage,
});
