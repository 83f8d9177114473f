import { createHash } from "node:crypto";
import type { ProfilePart } from "./profile.ts";
import type { Rack } from "./rack.ts";

/** The kinds of devices of a rack, as people call them. */
type Kind = "compute tray" | "switch" | "power shelf";

export interface Count {
  readonly kind: Kind;
  readonly have: number;
  readonly ready: number;
  readonly expected: number;
  /** Of the devices that are there, those that are not ready, each with what it is. */
  readonly notReady: readonly string[];
}

/** How many devices the rack has, how many of them are ready, and how many it should have. Without a profile it expects none. */
export function countMembers({ profile, trays, switches, shelves }: Rack): readonly Count[] {
  const notReady = trays.filter(({ ready }) => !ready).map(({ id, reprovision }) => `${id} (${whyNot(reprovision)})`);
  const inState = (devices: readonly { readonly id: string; readonly state: string }[]) =>
    devices.filter(({ state }) => state !== "ready").map(({ id, state }) => `${id} (${state})`);
  const count = (kind: Kind, have: number, missing: readonly string[], part: ProfilePart | undefined): Count => ({
    kind,
    have,
    ready: have - missing.length,
    expected: part?.count ?? 0,
    notReady: missing,
  });
  return [
    count("compute tray", trays.length, notReady, profile?.compute),
    count("switch", switches.length, inState(switches), profile?.switches),
    count("power shelf", shelves.length, inState(shelves), profile?.powerShelves),
  ];
}

const whyNot = (reprovision: string | null): string =>
  reprovision === null || reprovision === "ready" ? "its BMC does not answer" : reprovision;

export const isComplete = (rack: Rack): boolean =>
  rack.profile !== null && countMembers(rack).every(({ have, expected }) => have >= expected);
export const isDiscovered = (rack: Rack): boolean =>
  rack.profile !== null && countMembers(rack).every(({ ready, expected }) => ready >= expected);

/**
 * A fingerprint of which devices the rack has and what its profile wants. Nobody has to say that the topology changed: it did when
 * this did.
 */
export function topologyOf({ trays, switches, shelves, profileId, profile }: Rack): string {
  const ids = (devices: readonly { readonly id: string }[]) => devices.map(({ id }) => id).sort();
  const counts = profile && [profile.compute.count, profile.switches.count, profile.powerShelves.count];
  const all = JSON.stringify([ids(trays), ids(switches), ids(shelves), profileId, counts]);
  return createHash("sha256").update(all).digest("hex").slice(0, 16);
}

/** A device whose failure is the rack's: never a condition that comes and goes, so that racks do not flap. */
export function failedMembers({ trays, switches, shelves }: Rack): readonly string[] {
  const inError = (kind: Kind, devices: readonly { readonly id: string; readonly state: string }[]) =>
    devices.filter(({ state }) => state === "error").map(({ id }) => `${kind} ${id} is in error`);
  return [
    ...trays
      .filter(({ exhausted }) => exhausted)
      .map(({ id }) => `compute tray ${id}: its firmware upgrade failed, and is not tried again`),
    ...inError("switch", switches),
    ...inError("power shelf", shelves),
  ];
}
