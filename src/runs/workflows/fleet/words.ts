/** The workflows that fleet nodes are worked on by, and what people call them. */
export const FLEET_ONBOARDING = "fleet_onboarding";
export const FLEET_DECOMMISSION = "fleet_decommission";
/** Types of runs that a caller of StartRun cannot name: the fleet has commands of its own for them. */
export const FLEET_RUN_TYPES = { [FLEET_ONBOARDING]: "ONBOARD", [FLEET_DECOMMISSION]: "DECOMMISSION" } as const;
export type FleetWorkflow = keyof typeof FLEET_RUN_TYPES;

/** retire: only until the node is retired. The others are the four modes of a decommission. */
export const DECOMMISSION_MODES = ["soft_reset", "reimage", "full_decommission", "storage_cleanup"] as const;
export type DecommissionMode = (typeof DECOMMISSION_MODES)[number];
export type DecommissionParam = DecommissionMode | "retire";
