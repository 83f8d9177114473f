import { describe, expect, test } from "vitest";
import { componentsFor, type FirmwareComponent, suitsHardware } from "./rack-firmware.ts";

const component = (change: Partial<FirmwareComponent>): FirmwareComponent => ({
  device: "compute",
  component: "bmc",
  class: "prod",
  version: "1.2",
  digest: `sha256:${"0".repeat(64)}`,
  bytes: 10,
  targets: [],
  activation: "none",
  order: 0,
  ...change,
});

describe("the components of a record", () => {
  const record = {
    components: [
      component({ component: "bios", order: 2 }),
      component({ component: "bmc", order: 1 }),
      component({ component: "bmc", class: "dev", version: "1.3-dev" }),
      component({ device: "switch", component: "bmc" }),
    ],
  };
  const named = (...args: Parameters<typeof componentsFor>) => componentsFor(...args).map((each) => each.component);

  test("are those of the device and the class, in their order", () => {
    expect(named(record, "compute", "prod")).toEqual(["bmc", "bios"]);
    expect(componentsFor(record, "compute", "dev").map(({ version }) => version)).toEqual(["1.3-dev"]);
    expect(named(record, "power_shelf", "prod")).toEqual([]);
  });

  test("are the named ones, where somebody names any", () => {
    expect(named(record, "compute", "prod", ["bios", "cpld"])).toEqual(["bios"]);
  });
});

test("a record suits racks of its own type, and all racks where it is for any", () => {
  expect(suitsHardware({ hardwareType: "gb200" }, "gb200")).toBe(true);
  expect(suitsHardware({ hardwareType: "gb200" }, "gb300")).toBe(false);
  expect(suitsHardware({ hardwareType: "gb200" }, null)).toBe(false);
  expect(suitsHardware({ hardwareType: "any" }, null)).toBe(true);
});
