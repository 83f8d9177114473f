import type { BmcTarget } from "./bmc-target.ts";
import type { CallContext } from "./call.ts";
import type { PowerState } from "./power-control.ts";

export type Health = "ok" | "warning" | "critical" | "unknown";

/** What is not well. */
export interface Ailment {
  readonly name: string;
  readonly health: "warning" | "critical";
}

/** A machine in a few words, as its BMC says them. */
export interface MachineVitals {
  readonly serial: string | null;
  readonly systemUuid: string | null;
  readonly power: PowerState;
  readonly health: Health;
  /** Parts and sensors that are not well, by name; empty also where the BMC does not tell which. */
  readonly ailments: readonly Ailment[];
  /** Of the certificate that the BMC showed; absent where there is none of its own. */
  readonly certificateFingerprint?: string;
}

/**
 * How a machine is, in as few requests as can be: every machine of a fleet is asked again and again. Details are read only when
 * something is not well. Changes nothing.
 *
 * @throws StepFailure "retry" when the BMC cannot be reached or is busy, "fail" when it refuses for good.
 */
export interface Vitals {
  readVitals(target: BmcTarget, call: CallContext): Promise<MachineVitals>;
}
