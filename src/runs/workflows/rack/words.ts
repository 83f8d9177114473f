/** The workflows that racks are worked on by. */
export const RACK_MAINTENANCE = "rack_maintenance";
export const RACK_VALIDATION = "rack_validation";
