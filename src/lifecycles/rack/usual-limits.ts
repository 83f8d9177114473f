import { hours, minutes } from "../../kernel/time/duration.ts";
import type { RackLimits } from "./plan-work.ts";

/** Where the server was not configured: as the settings are by default. */
export const USUAL_LIMITS: RackLimits = {
  claimWait: minutes(30),
  hasRackManager: false,
  firmwareAtOnce: 18,
  powerAtOnce: 4,
  flashDeadline: hours(1),
  maintenanceAtOnce: 10,
  ingestionAtOnce: 50,
  stopAfterFailures: 5,
};
