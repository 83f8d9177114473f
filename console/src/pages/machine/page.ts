import { definePage } from "../page.ts";

export const machinePage = definePage({
  path: "/machines/$id",
  title: "Machine",
  thing: "machine",
  needs: "baremetal.v1.MachineService/GetMachine",
  load: async () => (await import("./machine.tsx")).MachinePage,
});
