import { createHash } from "node:crypto";
import { namedList } from "../../kernel/named-list.ts";
import type { ProfilePart } from "./profile.ts";
import type { Rack } from "./rack.ts";
import { devicesWord } from "./words.ts";

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
  reprovision === null || reprovision === "ready" ? "its BMC has not answered" : reprovision;

export const isComplete = (rack: Rack): boolean =>
  rack.profile !== null && countMembers(rack).every(({ have, expected }) => have >= expected);
/** All devices are ready, and it is known of each tray whether somebody uses it: one that nobody has checked could be rebooted under its user. */
export const isDiscovered = (rack: Rack): boolean =>
  rack.profile !== null &&
  countMembers(rack).every(({ ready, expected }) => ready >= expected) &&
  uncheckedTrays(rack).length === 0;

const uncheckedTrays = ({ trays }: Rack): readonly string[] =>
  trays.filter(({ assigned, inMaas }) => assigned === "unknown" && !inMaas).map(({ id }) => id);

/** For people: `compute trays 17 of 18, switches 9 of 9, power shelves 8 of 8`. */
export const describeCounts = (rack: Rack): string =>
  countMembers(rack)
    .map(({ kind, have, expected }) => `${devicesWord(kind)} ${have} of ${expected}`)
    .join(", ");

/** `rack show` lists them all. */
const MOST_NAMED = 5;

/** For people: what is not ready, by kinds that have too few, and which trays were not checked. */
export function describeUnready(rack: Rack): string {
  const tooFew = countMembers(rack)
    .filter(({ ready, expected }) => ready < expected)
    .map(({ kind, have, ready, expected, notReady }) => {
      const missing = have < expected ? [`${expected - have} not on record`] : [];
      const why = [...(notReady.length === 0 ? [] : [namedList(notReady, MOST_NAMED)]), ...missing].join("; ");
      return `${ready} of ${expected} ${devicesWord(kind)} are ready${why === "" ? "" : `: ${why}`}`;
    });
  const unchecked = uncheckedTrays(rack);
  const open = `it is not known whether somebody uses compute tray ${namedList(unchecked, MOST_NAMED)}`;
  return [...tooFew, ...(unchecked.length > 0 ? [open] : [])].join("; ");
}

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
      .filter(({ exhausted, inMaas }) => exhausted && !inMaas)
      .map(({ id }) => `compute tray ${id}: its firmware upgrade failed, and is not tried again`),
    ...inError("switch", switches),
    ...inError("power shelf", shelves),
  ];
}
