import { AppError } from "../../kernel/errors.ts";
import { list as listClaims } from "../../store/lifecycle/claims/claims.ts";
import { nameOf, type ThingKey } from "../../store/lifecycle/things.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { kindOfDevice } from "./device.ts";

interface Refusal {
  readonly action:
    | "assigned"
    | "deleted"
    | "moved to another address"
    | "moved to another rack"
    | "retired"
    | "taken out of maintenance";
  readonly field: string;
  /** Only what a holder of one of these kinds holds is refused. Absent: whoever holds it. */
  readonly by?: readonly string[];
}

/** Who writes firmware to a tray only as long as nobody uses it: its rack, and the tray itself. */
export const KEEPS_UNASSIGNED: readonly string[] = ["rack", "host_reprovision"];

/**
 * Refuses to take devices away from the holder of a claim: to delete them, or to move them to another rack. The caller holds the
 * devices' locks. What a device does by itself, such as a shelf in maintenance, is no reason.
 */
export async function refuseHeld(
  tx: Transaction,
  deps: ServiceDeps,
  devices: readonly ThingKey[],
  { action, field, by }: Refusal,
): Promise<void> {
  const claims = await listClaims(tx, devices);
  const held = claims.find(
    ({ standing, thing, holder }) =>
      standing === "granted" && nameOf(thing) !== nameOf(holder) && (by === undefined || by.includes(holder.kind)),
  );
  if (!held) return;
  const { thing, holder, reason } = held;
  const { noun } = kindOfDevice(deps, thing.kind).traits;
  throw new AppError(
    "failed_precondition",
    `${noun} ${thing.id} cannot be ${action}: ${holder.kind} ${holder.id} (${reason}) works on it; wait until that has ended, or cancel it`,
    { field, ...(deps.stores.has(holder.kind) && { next: `millwright explain ${holder.kind} ${holder.id}` }) },
  );
}
