import type { ExpectedDevice } from "../expected-device/expected-device.ts";

/** A shelf that the site says it has. */
export type ExpectedPowerShelf = ExpectedDevice;
