import type { BmcTarget } from "./bmc-target.ts";
import type { CallContext } from "./call.ts";

export interface SensorReading {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
}

export interface DeviceLogEntry {
  readonly id: string;
  readonly at: Date | null;
  readonly severity: "ok" | "warning" | "critical";
  readonly message: string;
}

export interface DeviceHealth {
  readonly status: "ok" | "warning" | "critical" | "unknown";
  readonly readings: readonly SensorReading[];
}

/** What a device measures and what it has noted. Changes nothing on it, but for a subscription that names us as receiver. */
export interface Sensors {
  readHealth(target: BmcTarget, call: CallContext): Promise<DeviceHealth>;
  readLog(
    target: BmcTarget,
    call: CallContext,
    options: { readonly limit: number },
  ): Promise<readonly DeviceLogEntry[]>;
}
