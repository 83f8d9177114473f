import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { Thing } from "../../kernel/lifecycle.ts";

/** Why an expected device is not linked yet, in the words of the API. */
export const EXPLORE_RESULTS = [
  "pending",
  "linked",
  "unreachable",
  "wrong_credentials",
  "wrong_serial",
  "duplicate",
  "failed",
  "detached",
] as const;
export type ExploreResult = (typeof EXPLORE_RESULTS)[number];

export interface ExpectedDeviceFacts {
  readonly explored: ExploreResult | null;
  readonly exploredAt: string | null;
  /** Of the certificate that its BMC showed first: from then on the password goes to no other, until the row is updated with it. */
  readonly certificateFingerprint: string | null;
}

/** A device of the kind that already has the row's MAC address: it is linked, not made a second time. */
export interface ExistingDevice {
  readonly id: string;
  readonly serial: string | null;
  readonly scheme: BmcTarget["scheme"];
  readonly trust: BmcTarget["trust"]["mode"];
  readonly certificateFingerprint: string | null;
  /** It is on its way out, and nothing to link to. */
  readonly markedForDeletion: boolean;
}

/** A device that the site says it has; the explorer looks for it, and makes the device once it is who it should be. */
export interface ExpectedDevice extends Thing {
  readonly bmc: { readonly mac: string; readonly address: string | null; readonly port: number | null };
  readonly serial: string;
  readonly name: string;
  readonly description: string;
  readonly labels: Readonly<Record<string, string | null>>;
  readonly rackId: string | null;
  readonly facts: ExpectedDeviceFacts;
  /** The device that it became; kept when that is deleted. */
  readonly deviceId: string | null;
  readonly existing: ExistingDevice | null;
}
