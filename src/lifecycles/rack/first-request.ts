import type { Rack } from "./rack.ts";

const NOT_ADMITTED: ReadonlySet<string | undefined> = new Set(["maintenance_limit", "maintenance_stopped"]);

/** The rack would begin by itself, and may not yet. */
export const isKeptWaiting = ({ outcome }: Pick<Rack, "outcome">): boolean =>
  outcome?.type === "waiting" && NOT_ADMITTED.has(outcome.cause?.code);

/** A reprovision comes before a requested maintenance, unless it may not begin yet: what an operator asks for by name goes ahead. */
export const reprovisionComesFirst = (
  rack: Pick<Rack, "outcome" | "reprovisionRequest" | "maintenanceRequest">,
): boolean => rack.reprovisionRequest !== null && (rack.maintenanceRequest === null || !isKeptWaiting(rack));
