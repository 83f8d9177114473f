import { definePage } from "../page.ts";

export const powerShelvesPage = definePage({
  path: "/power-shelves",
  title: "Power shelves",
  nav: { group: "fleet" },
  lists: "power_shelf",
  needs: "millwright.v1.PowerShelfService/ListPowerShelves",
  load: async () => (await import("./power-shelves.tsx")).PowerShelves,
});

export const powerShelfPage = definePage({
  path: "/power-shelves/$id",
  title: "Power shelf",
  thing: "power_shelf",
  needs: "millwright.v1.PowerShelfService/GetPowerShelf",
  load: async () => (await import("./power-shelf.tsx")).PowerShelfPage,
});
