import { z } from "zod";
import type { ExpectedSwitch } from "../../lifecycles/expected-switch/expected-switch.ts";
import { expectedSwitchLifecycle } from "../../lifecycles/expected-switch/lifecycle.ts";
import { switchLifecycle } from "../../lifecycles/switch/lifecycle.ts";
import { defineExpectedDevices, type ExpectedDeviceRecord } from "../expected-device/expected-devices.ts";

type Own = Pick<ExpectedSwitch, "nvosMacs" | "nvosUsername" | "nvosAddress">;
export type ExpectedSwitchRecord = ExpectedDeviceRecord & Own;

const rowSchema = z.object({
  nvos_macs: z.array(z.string()),
  nvos_username: z.string().nullable(),
  nvos_address: z.string().nullable(),
});

export const expectedSwitches = defineExpectedDevices<Own>({
  lifecycle: expectedSwitchLifecycle,
  table: "expected_switches",
  serialColumn: "switch_serial_number",
  link: "switchId",
  device: { kind: switchLifecycle.kind, table: "switches" },
  columns: ["nvos_macs", "nvos_username", "nvos_address"],
  parse(row) {
    const own = rowSchema.parse(row);
    return { nvosMacs: own.nvos_macs, nvosUsername: own.nvos_username, nvosAddress: own.nvos_address };
  },
});
export const { store: expectedSwitchStore, list: listExpectedSwitches } = expectedSwitches;
