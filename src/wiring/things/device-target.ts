import type { BmcTarget, TlsTrust } from "../../capabilities/bmc-target.ts";
import type { BmcDevice } from "../../lifecycles/device/bmc-device.ts";
import type { ExpectedDevice } from "../../lifecycles/expected-device/expected-device.ts";

type Reached = Omit<BmcTarget, "username" | "password">;

/** Where the BMC of a device is, and how its certificate is checked. */
export const deviceTarget = ({ bmc, facts }: BmcDevice): Reached => ({
  ...bmc,
  trust: trustOf(bmc.trust, facts.certificateFingerprint),
});

/** A device that is on record with this BMC has settled how it is spoken to, and which certificate it shows. */
export function explorerTarget({ bmc, existing, facts }: ExpectedDevice): Reached {
  const pinned = existing?.certificateFingerprint ?? facts.certificateFingerprint;
  return {
    address: bmc.address ?? "",
    port: bmc.port ?? 443,
    scheme: existing?.scheme ?? "https",
    trust: trustOf(existing?.trust ?? "pin", pinned),
  };
}

/** Against the certificate that the BMC showed first, where that is how it is trusted. */
const trustOf = (mode: TlsTrust["mode"], fingerprint: string | null): TlsTrust =>
  mode === "pin" && fingerprint !== null ? { mode, fingerprint256: fingerprint } : { mode };
