import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { POWER_STATES } from "../../../capabilities/power-control.ts";
import { isLocalPath, membersOf, type Resource } from "../resource.ts";
import { isSupplyOn, layoutOf, powerStateOf } from "./layouts.ts";
import { checkedByMeter } from "./meter.ts";

test.each([
  ["LITE-ON TECHNOLOGY CORP.", "liteon"],
  ["Liteon", "liteon"],
  ["DELTA", "delta"],
  ["Delta Energy Systems", "delta"],
  ["Generic", "standard"],
  ["", "standard"],
  [undefined, "standard"],
  [7, "standard"],
])("manufacturer %j has layout %s", (Manufacturer, layout) => {
  expect(layoutOf({ Manufacturer }).name).toBe(layout);
});

test.each([
  ["On", "on"],
  ["Off", "off"],
  ["PoweringOn", "powering_on"],
  ["PoweringOff", "powering_off"],
  ["Paused", "unknown"],
  ["constructor", "unknown"],
  ["", undefined],
  [true, undefined],
])("PowerState %j reads as %s", (PowerState, expected) => {
  expect(powerStateOf({ PowerState })).toBe(expected);
});

test.each<[Resource, boolean | null]>([
  [{ PowerState: true }, true],
  [{ PowerState: false, Status: { State: "Enabled" } }, false],
  [{ Oem: { deltaenergysystems: { Power: "On" } } }, true],
  [{ Oem: { deltaenergysystems: { Power: false } }, Status: { State: "Enabled" } }, false],
  [{ Status: { State: "Enabled" } }, true],
  [{ Status: { State: "StandbyOffline" } }, false],
  [{ Status: { State: "Starting" } }, null],
  [{}, null],
])("a supply that says %j gives power: %s", (supply, expected) => {
  expect(isSupplyOn(supply)).toBe(expected);
});

describe("the meter", () => {
  test.each([
    ["off", { watts: 12_000, volts: 50 }, "unknown"],
    ["off", { watts: 12_000, volts: undefined }, "unknown"],
    ["off", { watts: 3, volts: 50 }, "off"], // another shelf feeds the bus bar
    ["off", { watts: 0, volts: 0 }, "off"],
    ["on", { watts: 0, volts: 50 }, "on"], // no load
    ["on", { watts: 0, volts: undefined }, "on"],
    ["on", { watts: 0, volts: 0 }, "unknown"],
    ["on", { watts: undefined, volts: 0.2 }, "unknown"],
    ["on", { watts: 12_000, volts: 0 }, "on"], // the volt meter is broken: power is given
  ] as const)("with %s reported and %j measured, the power is %s", (reported, output, expected) => {
    expect(checkedByMeter(reported, output)).toBe(expected);
  });

  test("can cast doubt on what is reported, and never turns it into its opposite", () => {
    const reading = fc.option(fc.double(), { nil: undefined });
    fc.assert(
      fc.property(fc.constantFrom(...POWER_STATES), reading, reading, (reported, watts, volts) => {
        expect([reported, "unknown"]).toContain(checkedByMeter(reported, { watts, volts }));
      }),
    );
  });

  test("leaves a change under way alone", () => {
    for (const reported of ["powering_on", "powering_off", "unknown"] as const) {
      expect(checkedByMeter(reported, { watts: 12_000, volts: 50 })).toBe(reported);
      expect(checkedByMeter(reported, { watts: 0, volts: 0 })).toBe(reported);
    }
  });
});

test.each([
  ["/redfish/v1/Chassis/powershelf", true],
  ["/redfish/v1/", true],
  ["//elsewhere/redfish/v1", false],
  ["https://elsewhere/redfish/v1", false],
  ["/redfish/v1/../../etc", false],
  ["/redfish/v1/a b", false],
  ["/redfish/v1/a\r\nX: y", false],
  ["/api/v1", false],
])("a link to %j is followed: %s", (path, expected) => {
  expect(isLocalPath(path)).toBe(expected);
});

test("any JSON has members, if only none, and all of them are local", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      for (const { path } of membersOf(value)) expect(isLocalPath(path)).toBe(true);
    }),
  );
  expect(
    membersOf({ Members: [{ "@odata.id": "/redfish/v1/a" }, { "@odata.id": "https://elsewhere/" }, null, 1] }),
  ).toHaveLength(1);
});
