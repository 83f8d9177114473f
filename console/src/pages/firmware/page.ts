import { definePage } from "../page.ts";

export const firmwarePage = definePage({
  path: "/rack-firmware",
  title: "Firmware",
  nav: { group: "system" },
  needs: "millwright.v1.RackFirmwareService/ListRackFirmware",
  load: async () => (await import("./firmware.tsx")).Firmware,
});
