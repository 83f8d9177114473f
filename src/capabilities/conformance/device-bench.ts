import { StepFailure } from "../../kernel/errors.ts";
import { type Duration, minutes } from "../../kernel/time/duration.ts";
import type { BmcTarget } from "../bmc-target.ts";
import type { CallContext } from "../call.ts";
import type { Provider } from "../provider.ts";

/** What can be wrong with a device or the way to it. `lies_…`: it misbehaves and says that all is well. */
export const DEVICE_TROUBLES = [
  /** Nobody listens any more. */
  "is_gone",
  "cuts_connections",
  "hangs",
  /** It sends an answer byte by byte, and never comes to its end. */
  "drips",
  /** It takes a while for each answer, and gives the right one. */
  "is_slow",
  "is_overloaded",
  "writes_garbage",
  /** It answers with success, and with an object that has nothing to do with the question. */
  "talks_nonsense",
  /** It sends as fast as it can, and never ends. */
  "floods",
  "rejects_credentials",
  /** It knows who asks, and does not let them. */
  "forbids",
  "lies_about_accepting",
  "lies_about_power",
] as const;
export type DeviceTrouble = (typeof DEVICE_TROUBLES)[number];

/**
 * A device on the bench and a provider to reach it with, fresh for each test: powered on, healthy, never asked before. All
 * that the bench tells comes from the device itself and not through the provider.
 */
export interface FaultyBench<Target = BmcTarget> {
  readonly provider: Provider;
  readonly target: Target;
  /** Requests that the device has received. */
  requestsReceived(): Promise<number>;
  cause(trouble: DeviceTrouble): Promise<void>;
  putRight(): Promise<void>;
}

export interface PowerBench extends FaultyBench {
  realPower(): Promise<"on" | "off" | "powering_on" | "powering_off">;
  /** Somebody uses the switch at the rack. */
  switchAtRack(power: "on" | "off"): Promise<void>;
  /** Power commands that the device has accepted. */
  commandsAccepted(): Promise<number>;
}

export interface DeviceBench extends PowerBench {
  readonly serial: string;
  readonly powerSupplies: number;
}

export type SetUpBench<B = DeviceBench> = () => Promise<B>;

/** A BMC that nobody reaches, for what is judged without asking it. */
export const aTarget = (differing: Partial<BmcTarget> = {}): BmcTarget => ({
  address: "192.0.2.1",
  port: 443,
  scheme: "https",
  username: "root",
  password: "canary-4711",
  trust: { mode: "off" },
  ...differing,
});

/** A call that may take its time, or as long as its lease lasts. */
export function aCall(options: { signal?: AbortSignal; lease?: Duration } = {}): CallContext {
  const { signal = new AbortController().signal, lease = minutes(5) } = options;
  return { signal, subject: "conformance", mayTouchDevice: (wanted) => (wanted < lease ? wanted : lease) };
}

/** A call whose lease ended before it began. */
export function aFencedCall(): CallContext {
  return {
    signal: new AbortController().signal,
    subject: "conformance",
    mayTouchDevice: () => {
      throw new StepFailure("stopped", "the lease is gone");
    },
  };
}
