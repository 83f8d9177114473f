/** The workflows that fleet nodes are worked on by. */
export const FLEET_ONBOARDING = "fleet_onboarding";
export const FLEET_DECOMMISSION = "fleet_decommission";
