import { definePage } from "../page.ts";

export const switchesPage = definePage({
  path: "/switches",
  title: "Switches",
  nav: { group: "fleet" },
  lists: "switch",
  needs: "millwright.v1.SwitchService/ListSwitches",
  load: async () => (await import("./switches.tsx")).Switches,
});

export const switchPage = definePage({
  path: "/switches/$id",
  title: "Switch",
  thing: "switch",
  needs: "millwright.v1.SwitchService/GetSwitch",
  load: async () => (await import("./switch.tsx")).SwitchPage,
});
