import { afterEach, describe } from "vitest";
import type { DeviceBench } from "../../../src/capabilities/conformance/device-bench.ts";
import { describeInventory } from "../../../src/capabilities/conformance/inventory.ts";
import { describePowerControl } from "../../../src/capabilities/conformance/power-control.ts";
import { describeSensors, type SensorsBench } from "../../../src/capabilities/conformance/sensors.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import {
  benchFor,
  type Reach,
  reach,
  SHELF_TROUBLES,
  type SimulatedDevice,
  type SimulatedSite,
  startSite,
} from "./simulated-bench.ts";

// A change of power takes 250 ms: long enough to be seen under way, short enough to wait for.
const SPEED = 20;

let site: SimulatedSite;
let open: Reach[] = [];
let next = 0;

beforeAll(async () => {
  site = await startSite(SPEED);
});
afterEach(async () => {
  await site.clearFaults();
  await Promise.all(open.map((one) => one.close()));
  open = [];
});
afterAll(() => site.stop());

/** A provider that has learnt nothing yet, and the devices in turn, so that no test meets the leftovers of the last. */
async function setUp(layout: SimulatedDevice["layout"]): Promise<DeviceBench & SensorsBench> {
  const devices = await site.devices(layout);
  const device = devices[next++ % devices.length];
  if (device === undefined) throw new Error(`the site has no shelf with layout ${layout}`);
  const reached = reach();
  open.push(reached);
  return benchFor(site, device, reached);
}

describe.each(["liteon", "standard"] as const)("redfish", (layout) => {
  describePowerControl(`a ${layout} shelf`, () => setUp(layout), SHELF_TROUBLES);
  describeInventory(`a ${layout} shelf`, () => setUp(layout), SHELF_TROUBLES);
  describeSensors(`a ${layout} shelf`, () => setUp(layout), SHELF_TROUBLES);
});
