import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { DeviceHealth, Sensors } from "../../capabilities/sensors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { minutes } from "../../kernel/time/duration.ts";
import type { BmcDevice } from "./bmc-device.ts";

const LOG_EVERY = minutes(5);
const LOG_ENTRIES = 20;
const LONGEST_ENTRY = 1_000;

/** A log takes several requests, so not every pass reads it; but at once when the device's health changed. */
export function logIsDue({ facts }: BmcDevice, health: DeviceHealth, now: Date): boolean {
  if (facts.deviceLogReadAt === null || facts.health !== health.status) return true;
  return now.getTime() - Date.parse(facts.deviceLogReadAt) >= LOG_EVERY;
}

/** What a device cannot tell of its log must not hide the rest that was seen of it. */
export async function readLog(
  sensors: Sensors,
  bmc: BmcTarget,
  { call, clock }: { readonly call: CallContext; readonly clock: Clock },
): Promise<JsonObject> {
  const deviceLogReadAt = clock.now().toISOString();
  try {
    const entries = await sensors.readLog(bmc, call, { limit: LOG_ENTRIES });
    const deviceLog = entries.map(({ id, at, severity, message }) => ({
      id,
      at: at?.toISOString() ?? null,
      severity,
      message: message.slice(0, LONGEST_ENTRY),
    }));
    return { deviceLog, deviceLogReadAt };
  } catch (error) {
    if (error instanceof DeviceFailure) return { deviceLogReadAt };
    throw error;
  }
}
