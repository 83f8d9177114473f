import { expect, test } from "vitest";
import { actOf, requestOf } from "./maintenance-request.ts";
import { byPlace, firmwareShown, placeOf } from "./overlay.ts";

const member = (id: string, slot: string) => ({ id, slot, name: "" }) as never;

test("the highest slot is on top, whatever is written beside its number; what stands nowhere comes last", () => {
  const ids = byPlace([member("a", "2"), member("none", ""), member("b", "tray 10"), member("c", "9")]).map(
    ({ id }) => id,
  );
  expect(ids).toEqual(["b", "c", "a", "none"]);
  expect(placeOf({ slot: "" })).toBe(-1);
});

test("firmware is stale where both versions are known and differ", () => {
  const part = (installed: string, wanted: string) => ({ component: "bmc", installed, wanted }) as never;
  expect(firmwareShown({ firmware: [part("1", "2"), part("2", "2")] })).toEqual({
    text: "1 of 2 stale",
    tone: "waiting",
  });
  expect(firmwareShown({ firmware: [part("", "2")] })).toEqual({ text: "1 not read", tone: "calm" });
  expect(firmwareShown({ firmware: [part("2", "2")] })).toEqual({ text: "as wanted", tone: "calm" });
  expect(firmwareShown({ firmware: [] })).toEqual({ text: "", tone: "calm" });
});

test("what is chosen becomes the scope, and the button says what it does to how many", () => {
  const wish = {
    rackId: "r",
    chosen: new Set(["machine/m-1", "switch/s/2"]),
    activities: ["firmware_upgrade", "power_sequence"],
    firmware: "fw",
    reference: "",
  };
  expect(requestOf(wish)).toMatchObject({
    machineIds: ["m-1"],
    switchIds: ["s/2"],
    powerShelfIds: [],
    activities: [{ kind: "firmware_upgrade", firmwareVersion: "fw" }, { kind: "power_sequence" }],
  });
  const device = (...disturbances: string[]) => ({ disturbances }) as never;
  expect(actOf({ devices: [device("reboots"), device("reboots", "loses power"), device()] })).toBe(
    "Maintain 3 devices, 2 reboots, 1 loses power",
  );
  expect(actOf({ devices: [device()] })).toBe("Maintain 1 device");
});
