import type { BmcTarget } from "./bmc-target.ts";
import type { CallContext } from "./call.ts";

/** Where a machine boots from. */
export const BOOT_SOURCES = ["pxe", "http", "disk", "cd"] as const;
export type BootSource = (typeof BOOT_SOURCES)[number];

export interface BootOverride {
  /** "none": it boots in its own order. "other": something that we have no word for. */
  readonly source: BootSource | "none" | "other";
  /** For the next boot alone, or for every one until it is taken back. */
  readonly lasts: "once" | "always";
}

/**
 * From what a machine boots next.
 *
 * Every call is idempotent. Some BMCs keep "once" as "always"; what they really keep is what `readBootOverride` says, and whoever
 * cares clears it after the boot.
 *
 * @throws StepFailure "retry" when the BMC cannot be reached or is busy, "fail" when it refuses for good.
 */
export interface BootDevice {
  readBootOverride(target: BmcTarget, call: CallContext): Promise<BootOverride>;
  /** For the next boot. `httpUri` goes with "http": where the boot file is, for BMCs that want to be told. */
  setBootOverride(
    target: BmcTarget,
    source: BootSource,
    call: CallContext,
    options?: { readonly httpUri?: string },
  ): Promise<void>;
  clearBootOverride(target: BmcTarget, call: CallContext): Promise<void>;
}
