/** What operators do with a job of a fleet node, as `millwright fleet action` spells it. */
export const FLEET_ACTIONS = [
  "retry-stage",
  "resume",
  "rerun",
  "restart-clean",
  "cancel",
  "adopt-observed-state",
  "mark-manual",
] as const;
export type FleetAction = (typeof FLEET_ACTIONS)[number];

/** What the operator runs, as printed. */
export const actionCommand = (node: string, action: FleetAction): string => `millwright fleet action ${node} ${action}`;
