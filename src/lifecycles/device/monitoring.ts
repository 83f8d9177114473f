import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import type { DeviceIdentity, DeviceInventory } from "../../capabilities/inventory.ts";
import { need, type Provider } from "../../capabilities/provider.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import type { BmcDevice } from "./bmc-device.ts";
import { logIsDue, readLog } from "./device-log.ts";

export interface MonitorContext {
  readonly provider: Provider;
  readonly call: CallContext;
  readonly clock: Clock;
  /** Signs in to the device's BMC: where it is, with the credentials of the moment. */
  readonly target: () => Promise<BmcTarget>;
  readonly monitorEvery: Duration;
}

/** Addresses move: nothing is believed of, or sent to, a BMC that answers for another device. */
export function confirmIdentity({ facts }: BmcDevice, noun: string, bmc: BmcTarget, { serial }: DeviceIdentity): void {
  if (facts.serial === null || facts.serial === serial) return;
  const shown = serial === null ? {} : { shown: serial };
  throw new StepFailure(
    "wrong_identity",
    `the BMC at ${bmc.address} answers for ${serial === null ? "no serial" : `serial ${serial}`}, but this ${noun} is ${facts.serial}: check the address`,
    { facts: { at: "bmc", address: bmc.address, expected: facts.serial, ...shown } },
  );
}

export const identityFacts = ({ identity, bmcFirmware }: DeviceInventory): JsonObject => ({
  serial: identity.serial,
  vendor: identity.vendor,
  model: identity.model,
  certificateFingerprint: identity.certificateFingerprint ?? null,
  bmcFirmware,
});

const JUST_NOW = seconds(2);

/** The pass that led to the state has read everything already; asking the BMC all of it again tells nothing. */
export function wasJustObserved({ facts: { observedAt }, stateSince }: BmcDevice, clock: Clock): boolean {
  if (observedAt === null) return false;
  const isFirstLook = clock.now().getTime() - stateSince.getTime() < JUST_NOW;
  return isFirstLook && stateSince.getTime() - Date.parse(observedAt) < JUST_NOW;
}

/** What the BMC says now, as facts: power, health, sensors and log, and what `more` takes from the inventory. */
export async function observeDevice(
  device: BmcDevice,
  { provider, call, target, clock }: MonitorContext,
  noun: string,
  more: (inventory: DeviceInventory) => JsonObject,
): Promise<JsonObject> {
  const { power, sensors, ...can } = need(provider, ["power", "sensors", "inventory"]);
  const bmc = await target();
  const powerState = await power.readPower(bmc, call);
  const health = await sensors.readHealth(bmc, call);
  const inventory = await can.inventory.readInventory(bmc, call);
  confirmIdentity(device, noun, bmc, inventory.identity);
  return {
    powerState,
    health: health.status,
    sensors: health.readings.map((reading) => ({ ...reading })),
    bmcFirmware: inventory.bmcFirmware,
    certificateFingerprint: device.facts.certificateFingerprint ?? inventory.identity.certificateFingerprint ?? null,
    observedAt: clock.now().toISOString(),
    ...more(inventory),
    ...(logIsDue(device, health, clock.now()) && (await readLog(sensors, bmc, { call, clock }))),
  };
}
