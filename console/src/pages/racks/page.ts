import { definePage } from "../page.ts";

export const racksPage = definePage({
  path: "/racks",
  title: "Racks",
  nav: { group: "fleet" },
  lists: "rack",
  needs: "millwright.v1.RackService/ListRacks",
  load: async () => (await import("./racks.tsx")).Racks,
});

export const rackPage = definePage({
  path: "/racks/$id",
  title: "Rack",
  thing: "rack",
  needs: "millwright.v1.RackService/GetRack",
  load: async () => (await import("./rack.tsx")).RackPage,
});
