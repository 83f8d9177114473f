import { defineLifecycle } from "../../kernel/lifecycle.ts";
import { expectedDeviceTable } from "../expected-device/table.ts";
import type { ExpectedPowerShelf } from "./expected-power-shelf.ts";

export const expectedPowerShelfLifecycle = defineLifecycle<ExpectedPowerShelf>()({
  kind: "expected_power_shelf",
  ...expectedDeviceTable("power shelf", "power_shelf_deleted"),
});
