/** What a token is limited to, besides its roles. A list that is empty limits nothing; those that are not must all be kept to. */
export interface Scope extends Reach {
  /** Groups of methods. */
  readonly methods: readonly string[];
}

/** The things that a caller sees and acts on: those that each list which is not empty names in one of its words. */
export interface Reach {
  readonly racks: readonly string[];
  readonly clusters: readonly string[];
  readonly customers: readonly string[];
  /** `key=value`. */
  readonly labels: readonly string[];
}

const SCOPE_LIMITS = ["methods", "racks", "clusters", "customers", "labels"] as const;
export const REACH_LIMITS = ["racks", "clusters", "customers", "labels"] as const;

export const NO_LIMITS: Scope = { methods: [], racks: [], clusters: [], customers: [], labels: [] };

/** Undefined: every thing is within it. */
export const reachOf = (scope: Scope | null | undefined): Reach | undefined =>
  scope && REACH_LIMITS.some((limit) => scope[limit].length > 0) ? scope : undefined;

/** As people write and read it, a word for each limit: `methods=runs,machines`. */
export const printScope = (scope: Scope): string[] =>
  SCOPE_LIMITS.flatMap((limit) => (scope[limit].length === 0 ? [] : [`${limit}=${scope[limit].join(",")}`]));

/**
 * A scope as it is stored. Undefined for one that says something which this version does not know: whatever that limits, nobody may take it
 * for no limit.
 */
export function parseScope(stored: unknown): Scope | undefined {
  if (typeof stored !== "object" || stored === null || Array.isArray(stored)) return undefined;
  const isKnown = ([limit, words]: [string, unknown]) =>
    SCOPE_LIMITS.some((known) => known === limit) &&
    Array.isArray(words) &&
    words.every((word) => typeof word === "string");
  return Object.entries(stored).every(isKnown) ? { ...NO_LIMITS, ...stored } : undefined;
}
