/**
 * What the `methods` of a token's scope name: methods and routes that people give away together. Which is in which group is in
 * `wiring/things/` and `wiring/shared-services.ts`.
 */
export const METHOD_GROUPS = [
  "audit",
  "catalogs",
  "expected",
  "firmware",
  "fleet",
  "health",
  "history",
  "installs",
  "machines",
  "metrics",
  "power-shelves",
  "racks",
  "runs",
  "switches",
] as const;
export type MethodGroup = (typeof METHOD_GROUPS)[number];

export const isMethodGroup = (word: string): word is MethodGroup => METHOD_GROUPS.some((group) => group === word);
