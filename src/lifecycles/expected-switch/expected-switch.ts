import type { ExpectedDevice } from "../expected-device/expected-device.ts";

/** A switch that the site says it has, with what is known of its own operating system. */
export interface ExpectedSwitch extends ExpectedDevice {
  readonly nvosMacs: readonly string[];
  readonly nvosUsername: string | null;
}
