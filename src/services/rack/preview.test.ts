import { expect, test } from "vitest";
import { aRequest, wholeRack } from "../../../test/support/racks/whole-rack.ts";
import type { Tray } from "../../lifecycles/rack/rack.ts";
import { assignedIn } from "./preview.ts";
import type { PreviewedDevice } from "./preview-devices.ts";

const device = (kind: PreviewedDevice["kind"], id: string): PreviewedDevice => ({
  ...{ kind, id, name: "", components: [], disturbances: ["reboots"] },
});
const [tray] = wholeRack("ready").trays as readonly [Tray];
const rack = wholeRack("ready", {
  trays: [tray, { ...tray, id: "m2", inMaas: true, assigned: "yes" }],
  maintenanceRequest: { ...aRequest("r1"), include_assigned: { reason: "leak" } },
});
const messages = (...devices: readonly PreviewedDevice[]) => assignedIn(rack, devices).map(({ message }) => message);

test("a tray in use that is left out itself is told apart by whether what it depends on is touched", () => {
  expect(messages(device("machine", "m1"))).toEqual([expect.stringContaining("nothing of it is touched")]);
  expect(messages(device("machine", "m1"), device("switch", "sw1"))).toEqual([
    "is not touched itself, although switches or shelves that it depends on are: leak",
  ]);
});

test("a tray in use that is worked on says what it suffers, and why", () => {
  expect(messages(device("machine", "m2"))).toEqual(["reboots, although it is in use: leak"]);
});
