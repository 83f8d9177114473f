import type { BmcTarget } from "../bmc-target.ts";
import type { CallContext } from "../call.ts";

/** What a BMC says of itself to everybody, before anybody signs in. */
export interface ServiceRoot {
  readonly uuid: string | null;
  /** SHA-256 fingerprint of the certificate that it showed; absent over plain HTTP. */
  readonly certificateFingerprint?: string;
}

/** The BMC itself, and not the device that it is in. */
export interface BmcManager {
  /** Sends no credentials. */
  readRoot(target: BmcTarget, call: CallContext): Promise<ServiceRoot>;
  /** When the BMC started last, in its own words; null where it does not say. Another answer than before: it has restarted. */
  readStart(target: BmcTarget, call: CallContext): Promise<string | null>;
  /**
   * Restarts the BMC; the device that it is in goes on. Each call that is accepted is one more restart. Returns once it is accepted.
   *
   * @throws DeviceFailure "retry" when the BMC cannot be reached or is busy, "fail" when it offers no restart.
   */
  resetManager(target: BmcTarget, call: CallContext): Promise<void>;
  /** For how long the BMC may be away, and reject everybody while it starts: rejections until then count against nobody. */
  expectRestart(target: BmcTarget, until: Date): void;
}
