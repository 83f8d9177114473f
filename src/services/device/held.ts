import { AppError } from "../../kernel/errors.ts";
import { list as listClaims } from "../../store/lifecycle/claims/claims.ts";
import { findKeeping } from "../../store/lifecycle/claims/in-use.ts";
import { nameOf, type ThingKey } from "../../store/lifecycle/things.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { kindOfDevice } from "./device.ts";
import { rackKeys } from "./racks.ts";

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
  if (held) throw heldBy(deps, { ...held, what: "it" }, { action, field });
}

interface Holding {
  readonly thing: ThingKey;
  readonly holder: ThingKey;
  readonly reason: string;
  /** What the holder works on. */
  readonly what: string;
}

function heldBy(deps: ServiceDeps, { thing, holder, reason, what }: Holding, { action, field }: Refusal): AppError {
  const { noun } = kindOfDevice(deps, thing.kind).traits;
  return new AppError(
    "failed_precondition",
    `${noun} ${thing.id} cannot be ${action}: ${holder.kind} ${holder.id} (${reason}) works on ${what}; wait until that has ended, or cancel it`,
    { field, ...(deps.stores.has(holder.kind) && { next: `millwright explain ${holder.kind} ${holder.id}` }) },
  );
}

/** Claims of these on a machine keep it from use also where an older server took them, which did not write that down. */
const KEEP_UNUSED: readonly string[] = ["rack", "host_reprovision"];

/**
 * Refuses to let a machine come into use while somebody works on it, or on a switch or shelf of its rack, and relies on nobody using it.
 * The caller holds the locks of the machine and of its rack.
 */
export async function refuseToUse(
  tx: Transaction,
  deps: ServiceDeps,
  { machine, rackId }: { readonly machine: ThingKey; readonly rackId: string | null },
  refusal: Refusal,
): Promise<void> {
  const keeping = await findKeeping(tx, [machine, ...rackKeys([rackId])]);
  if (!keeping) return refuseHeld(tx, deps, [machine], { ...refusal, by: KEEP_UNUSED });
  const { holder, thing, reason } = keeping;
  const what = nameOf(thing) === nameOf(machine) ? "it" : `${thing.kind} ${thing.id}`;
  throw heldBy(deps, { thing: machine, holder, reason, what }, refusal);
}
