import type { BmcTarget } from "./bmc-target.ts";
import type { CallContext } from "./call.ts";

/** The light by which a person finds the machine in its rack. Idempotent. */
export interface Locator {
  readLocator(target: BmcTarget, call: CallContext): Promise<"lit" | "dark" | "unknown">;
  setLocator(target: BmcTarget, light: "lit" | "dark", call: CallContext): Promise<void>;
}
