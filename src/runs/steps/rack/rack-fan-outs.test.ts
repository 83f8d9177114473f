import { expect, test } from "vitest";
import type { JsonObject } from "../../../kernel/lifecycle.ts";
import { hours, minutes } from "../../../kernel/time/duration.ts";
import type { FirmwarePlan } from "../../../lifecycles/rack/payloads.ts";
import type { FirmwareComponent } from "../../../lifecycles/rack-firmware/rack-firmware.ts";
import { timeoutOf } from "../../model/plan/plan.ts";
import { rackMaintenance } from "../../workflows/rack/rack-maintenance.ts";
import { planOfWorkflow } from "../../workflows/workflow.ts";
import { serverSteps } from "../index.ts";

const component = (name: string, activation: FirmwareComponent["activation"]): FirmwareComponent =>
  ({ device: "compute", component: name, version: "2", digest: "sha256:1", targets: [], activation }) as never;

const none = { devices: [], components: [] };
const plan = (devices: number, differing: Partial<FirmwarePlan> = {}): FirmwarePlan => ({
  firmware_id: "fw-2",
  at_once: 4,
  deadline_seconds: 3_600,
  awaits_fabric: false,
  unfit: [],
  compute: {
    devices: Array.from({ length: devices }, (_, at) => `m${at}`),
    components: [component("bmc", "none"), component("bios", "power_cycle")],
  },
  switch: none,
  power_shelf: none,
  ...differing,
});

function timeOf(payload: object) {
  const payloads = { firmware_upgrade: payload as JsonObject, configure_nmx_cluster: { skip: "not asked for" } };
  return planOfWorkflow(rackMaintenance, serverSteps, { payloads }).steps.map(timeoutOf)[0];
}

test("the firmware stage has the time of all its devices, as many at once as are allowed", () => {
  const each = hours(2) + minutes(30); // two components, one restart
  expect(timeOf(plan(4))).toBe(each + minutes(30));
  expect(timeOf(plan(18))).toBe(5 * each + minutes(30));
  expect(timeOf(plan(18, { deadline_seconds: 60, at_once: 18 }))).toBe(minutes(2 + 30 + 30));
  expect(timeOf({ skip: "nothing to do" })).toBe(hours(4));
});
