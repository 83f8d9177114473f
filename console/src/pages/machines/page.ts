import { definePage } from "../page.ts";

export const machinesPage = definePage({
  path: "/machines",
  title: "Machines",
  nav: { group: "fleet" },
  lists: "machine",
  needs: "millwright.v1.MachineService/ListMachines",
  load: async () => (await import("./machines.tsx")).Machines,
});
