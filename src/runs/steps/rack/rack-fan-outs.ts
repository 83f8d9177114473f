import type { Cause } from "../../../kernel/causes.ts";
import { type Duration, hours, milliseconds, minutes, seconds } from "../../../kernel/time/duration.ts";
import {
  DEVICE_KINDS,
  type DeviceCheck,
  type FirmwarePlan,
  type PowerTier,
} from "../../../lifecycles/rack/payloads.ts";
import type { Rack } from "../../../lifecycles/rack/rack.ts";
import { FIRMWARE_DEVICES, type FirmwareDevice } from "../../../lifecycles/rack-firmware/rack-firmware.ts";
import { type ChildRun, childStep } from "../../children/child-run.ts";
import { defineFanOut } from "../../children/fan-out.ts";
import type { Sum } from "../../children/sum.ts";
import { timeoutOf } from "../../model/plan/plan.ts";
import type { RunTarget } from "../../targets/run-target.ts";
import { deviceFirmwareSteps } from "./device-steps.ts";
import { setDevicePower } from "./set-device-power.ts";
import { validateDevice } from "./validate-device.ts";

const deviceOf = (kind: string): FirmwareDevice =>
  FIRMWARE_DEVICES.find((device) => DEVICE_KINDS[device] === kind) ?? "compute";

/** What each stage is given was worked out and frozen when the maintenance began; a stage that is skipped or refused is never entered. */

/** All of them: the cause of the rack's error must name each device. */
export function describeFailed(
  { failed, canceled }: Sum,
  unfit: readonly { readonly id: string; readonly why: string }[] = [],
) {
  const said = ({ target, id, message, isUnproven }: ChildRun) =>
    `${target.id}: ${isUnproven ? `unproven, run ${id} goes on: ` : ""}${message === "" ? "failed" : message}`;
  const all = [
    ...unfit.map(({ id, why }) => `${id}: ${why}`),
    ...failed.map(said),
    ...canceled.map(({ target }) => `${target.id}: its run was canceled`),
  ];
  return all.length === 0 ? undefined : all.join("; ");
}

export const causeOf = ({ failed }: Sum): Cause =>
  failed.find(({ isUnproven }) => isUnproven)
    ? { code: "firmware_unproven", facts: { at: "bmc" } }
    : (failed.find(({ cause }) => cause !== null)?.cause ?? { code: "children_failed" });

const stepsFor = (payload: FirmwarePlan, device: FirmwareDevice) =>
  deviceFirmwareSteps(payload.firmware_id, payload[device].components, seconds(payload.deadline_seconds));

/** As long as all devices may take, as many at once as are allowed: the deadline of the stage cuts off no device that is in its own time. */
function timeForAll(payload: FirmwarePlan): Duration {
  const flashed = FIRMWARE_DEVICES.filter((device) => (payload[device]?.devices ?? []).length > 0);
  const count = flashed.reduce((sum, device) => sum + payload[device].devices.length, 0);
  const times = flashed.map((device) => stepsFor(payload, device).reduce((sum, step) => sum + timeoutOf(step), 0));
  return milliseconds(Math.ceil(count / payload.at_once) * Math.max(0, ...times) + TO_SPARE);
}

/** Between the end of one child and the begin of the next. */
export const TO_SPARE = minutes(30);

/** Flashes all devices of the rack's scope that the firmware has something for. */
export const rackFirmware = defineFanOut<Rack, FirmwarePlan>({
  kind: "rack_firmware",
  parse: (payload) => payload as FirmwarePlan,
  defaults: { timeout: hours(4) },
  timeoutFor: timeForAll,
  targets(_, payload): readonly RunTarget[] {
    return FIRMWARE_DEVICES.flatMap((device) =>
      payload[device].devices.map((id) => ({ kind: DEVICE_KINDS[device], id })),
    );
  },
  stepsOn: ({ kind }, payload) => stepsFor(payload, deviceOf(kind)),
  paramsOn: ({ kind }, { awaits_fabric }) =>
    kind === DEVICE_KINDS.switch && awaits_fabric ? { awaits_fabric: "true" } : {},
  atOnce: (payload) => payload.at_once,
  verdict: (sum, payload) => describeFailed(sum, payload.unfit),
  causeOf: (sum, payload) => (payload.unfit.length > 0 ? UNPROVEN : causeOf(sum)),
});

const UNPROVEN: Cause = { code: "firmware_unproven", facts: { at: "bmc" } };

/** Switches one tier of the rack on or off: all of it is verified before the next tier begins. */
export const rackPower = defineFanOut<Rack, PowerTier>({
  kind: "rack_power",
  parse: (payload) => payload as PowerTier,
  defaults: { timeout: minutes(30) },
  targets(_, payload) {
    const { tier, devices } = payload;
    return devices.map((id) => ({ kind: DEVICE_KINDS[tier], id }));
  },
  stepsOn: (_, payload) => [childStep(setDevicePower, { desired: payload.desired })],
  atOnce: (payload) => payload.at_once,
  verdict: (sum) => describeFailed(sum),
  causeOf,
});

/** Reads every device that was worked on; each is a row of the outcome. */
export const validateDevices = defineFanOut<Rack, DeviceCheck>({
  kind: "validate_devices",
  parse: (payload) => payload as DeviceCheck,
  defaults: { timeout: minutes(15) },
  targets: (_, payload) => payload.devices,
  stepsOn: ({ kind }, payload) => [childStep(validateDevice, { wanted: payload.wanted[deviceOf(kind)] })],
  atOnce: 18,
  verdict: (sum) => describeFailed(sum),
  causeOf,
});
