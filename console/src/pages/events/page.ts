import { definePage } from "../page.ts";

export const eventsPage = definePage({
  path: "/events",
  title: "Events",
  nav: { group: "work" },
  needs: "millwright.v1.HistoryService/ListEvents",
  load: async () => (await import("./events.tsx")).Events,
});
