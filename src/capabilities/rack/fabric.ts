import type { BmcTarget } from "../bmc-target.ts";
import type { CallContext } from "../call.ts";

/** Where the operating system of a switch is reached, and how to sign in. */
export type FabricTarget = Omit<BmcTarget, "path">;

/** What a switch says of the fabric that it is a part of. */
export interface FabricStatus {
  /** unknown: the switch does not say. */
  readonly state: "ok" | "not_ok" | "unknown";
  /** In the switch's own words: how far its control plane is. */
  readonly additionInfo: string | null;
  readonly reason: string | null;
  readonly error: string | null;
  /** SHA-256 fingerprint of the certificate that the switch showed; absent over plain HTTP. */
  readonly certificateFingerprint?: string;
}

/** What is to be configured, and what is known of earlier calls for the same. */
export interface FabricOrder {
  readonly topology: string;
  /** What the previous call began; null: there was none, or its answer was lost. */
  readonly job: string | null;
  /** What the primary listed before the first call: what was begun since, and is ours by what it does, is gone on with. Null: nobody knows. */
  readonly jobsBefore: readonly string[] | null;
}

/** What one call to configure a fabric did. */
export interface FabricCall {
  /** The switch's own name of what it does now, where it has one. */
  readonly job: string | null;
  /** The controller was started, by this call or before: the switches come up by themselves. False: another call is needed. */
  readonly isStarted: boolean;
}

/**
 * The fabric that the switches of a rack are together. It is configured on one of them, the primary; the others follow.
 *
 * Configuring is idempotent: what is configured already stays. It may take several calls, each of which does what can be done by then
 * and goes on with what the previous one began: nothing is begun a second time while the first is under way.
 *
 * @throws DeviceFailure "retry" when the switch cannot be reached or is busy, "fail" when it refuses for good.
 */
export interface Fabric {
  configure(primary: FabricTarget, order: FabricOrder, call: CallContext): Promise<FabricCall>;
  /** What the switch changes or has changed, by its own names. */
  listJobs(primary: FabricTarget, call: CallContext): Promise<readonly string[]>;
  readStatus(member: FabricTarget, call: CallContext): Promise<FabricStatus>;
}

const CONFIGURED = "CONTROL_PLANE_STATE_CONFIGURED";

export const isFabricRunning = ({ state, additionInfo }: FabricStatus): boolean =>
  state === "ok" && additionInfo === CONFIGURED;
