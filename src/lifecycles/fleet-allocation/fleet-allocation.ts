import type { Json, Thing } from "../../kernel/lifecycle.ts";

/** That somebody uses a fleet node, or is about to. */
export interface FleetAllocation extends Thing {
  /** The fleet node. */
  readonly node: string;
  /** Empty where the node is not on record any more. */
  readonly hostname: string;
  /** Whom it is for. */
  readonly tenant: string;
  readonly createdBy: string;
  readonly createdAt: Date;
  readonly facts: Readonly<Record<string, never>>;
  readonly state: {
    readonly name: string;
    /** While releasing, and after that failed: whether an administrator asked, or the node's decommission. */
    readonly force?: boolean;
    /** Why it failed, or could not be released. */
    readonly cause?: string;
    readonly failure?: Json;
    readonly [carried: string]: Json | undefined;
  };
}
