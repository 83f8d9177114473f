import type { Thing } from "../../kernel/lifecycle.ts";

/** maas: MAAS brings it up. manual: its owner runs a bootstrap command on a host that is up already. */
export const FLEET_MODES = ["maas", "manual"] as const;
export type FleetMode = (typeof FLEET_MODES)[number];

/**
 * The single-use token with which the agent of the node enrols. The token itself is kept nowhere: it follows from the node and the
 * number of the issue. A type and no interface, so that it is JSON to the compiler.
 */
export type Enrollment = {
  /** From 1 on; each reissue makes the tokens of the issues before it worthless. */
  readonly issue: number;
  readonly tokenHash: string;
  readonly expiresAt: string;
  /** Null: nobody has enrolled with it. */
  readonly consumedAt: string | null;
};

/** What is known of a node beside its state. Every part is null until it is known. */
export interface FleetNodeFacts {
  /** The machine in MAAS that the node is bound to. */
  readonly systemId: string | null;
  /** Why it is, or was, quarantined: kept until an operator or a completed onboarding lifts it. */
  readonly quarantineReason: string | null;
  readonly enrollment: Enrollment | null;
  /** When its own job ordered the deployment that MAAS shows; null: none did, or it was released since. */
  readonly deployOrderedAt: string | null;
}

/** A GPU node that is onboarded to be scheduled on. It points at the one machine of the inventory that it is. */
export interface FleetNode extends Thing {
  readonly site: string;
  /** The name of the profile at the site. */
  readonly profile: string;
  readonly sku: string;
  readonly hostname: string;
  /** Null: a manual node, whose BMC nobody named. */
  readonly ipmiIp: string | null;
  readonly mode: FleetMode;
  readonly machineId: string;
  readonly facts: FleetNodeFacts;
}
