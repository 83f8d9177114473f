import type { ExpectedDevice } from "../expected-device/expected-device.ts";

/** A switch that the site says it has, with what is known of its own operating system. */
export interface ExpectedSwitch extends ExpectedDevice {
  readonly nvosMacs: readonly string[];
  readonly nvosUsername: string | null;
  /** Where its operating system is reached, host or host:port; null: as its BMC reports. */
  readonly nvosAddress: string | null;
}
