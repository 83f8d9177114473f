import { definePage } from "../page.ts";

export const scriptsPage = definePage({
  path: "/scripts",
  title: "Scripts",
  nav: { group: "system" },
  needs: "millwright.v1.ScriptService/ListScripts",
  load: async () => (await import("./scripts.tsx")).Scripts,
});

export const scriptPage = definePage({
  path: "/scripts/$id",
  title: "Script",
  thing: "script",
  needs: "millwright.v1.ScriptService/GetScript",
  load: async () => (await import("./script.tsx")).ScriptPage,
});
