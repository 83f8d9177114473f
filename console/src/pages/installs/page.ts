import { definePage } from "../page.ts";

export const installsPage = definePage({
  path: "/installs",
  title: "Installs",
  nav: { group: "fleet" },
  lists: "install",
  needs: "millwright.v1.NodeService/ListNodes",
  load: async () => (await import("./installs.tsx")).Installs,
});

export const installPage = definePage({
  path: "/installs/$id",
  title: "Install",
  thing: "install",
  needs: "millwright.v1.NodeService/ListNodes",
  load: async () => (await import("./install.tsx")).InstallPage,
});
