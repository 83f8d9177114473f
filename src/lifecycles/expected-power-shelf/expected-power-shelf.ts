import type { Thing } from "../../kernel/lifecycle.ts";

/** Why an expected shelf is not linked yet, in the words of the API. */
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

export interface ExpectedPowerShelfFacts {
  readonly explored: ExploreResult | null;
  readonly exploredAt: string | null;
  /** The shelf that it became; kept when that is deleted. */
  readonly powerShelfId: string | null;
}

/** A shelf that the site says it has; the explorer looks for it, and makes the power shelf once it is who it should be. */
export interface ExpectedPowerShelf extends Thing {
  readonly bmc: { readonly mac: string; readonly address: string | null; readonly port: number | null };
  readonly serial: string;
  readonly name: string;
  readonly description: string;
  readonly labels: Readonly<Record<string, string | null>>;
  readonly rackId: string | null;
  readonly facts: ExpectedPowerShelfFacts;
  /** A power shelf that already has this MAC address: it is linked, not made a second time. */
  readonly existingShelf: { readonly id: string; readonly serial: string | null } | null;
}
