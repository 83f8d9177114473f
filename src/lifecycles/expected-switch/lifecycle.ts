import { defineLifecycle } from "../../kernel/lifecycle.ts";
import { expectedDeviceTable } from "../expected-device/table.ts";
import type { ExpectedSwitch } from "./expected-switch.ts";

export const expectedSwitchLifecycle = defineLifecycle<ExpectedSwitch>()({
  kind: "expected_switch",
  ...expectedDeviceTable("switch", "switch_deleted"),
});
