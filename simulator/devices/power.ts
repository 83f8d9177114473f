export type Power = "on" | "off";
export type PowerPhase = Power | "powering_on" | "powering_off";

/** How a device takes a command: as asked, accepting and doing nothing, or only pretending to have done it. */
export type Conduct =
  | { readonly is: "honest" }
  | { readonly is: "idle" }
  | { readonly is: "lying"; readonly faultId: string };

export interface PendingChange {
  readonly to: Power;
  /** In simulated time. */
  readonly dueAt: number;
  /** A reset of what is on, rather than a change of power. */
  readonly resets?: true;
}

/** What a management controller claims about the power, whatever is true. */
export interface Lie extends PendingChange {
  /** The lie ends when this fault rule is removed. */
  readonly faultId: string;
}

/** Simulated milliseconds. */
export const POWER_CHANGE_MS = 5_000;
/** A late controller takes between these, and shows nothing of it until then. */
const LATE_MS = [1_000, 11_000] as const;
export const MANAGER_RESTART_MS = 20_000;

/** @param chance from 0 to 1 */
export const lateBy = (chance: number): number => LATE_MS[0] + Math.round(chance * (LATE_MS[1] - LATE_MS[0]));

const phaseTowards = (to: Power): PowerPhase => (to === "on" ? "powering_on" : "powering_off");

export const phaseOf = (power: Power, pending: readonly PendingChange[]): PowerPhase =>
  pending[0] === undefined ? power : phaseTowards(pending[0].to);

export const settledPower = (phase: PowerPhase): Power => (phase === "on" || phase === "powering_on" ? "on" : "off");

export const claimedPhase = (lie: Lie, now: number): PowerPhase => (lie.dueAt <= now ? lie.to : phaseTowards(lie.to));
