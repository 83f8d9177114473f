import { z } from "zod";
import { PROFILE_NAMES, type ProfileName, TRAIT_NAMES, type Trait } from "../devices/profile.ts";
import type { SeededValues } from "../seeded-values.ts";

export const name = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
    "must be 1 to 63 letters, digits, '.', '_' or '-', starting with a letter or digit",
  );
export const word = z.string().min(1).max(128);
export const loopbackAddress = z
  .string()
  .regex(/^127(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}$/, "must be a loopback address, 127.x.y.z");
export const mac = z
  .string()
  .regex(/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/, "must be six lower-case hexadecimal pairs joined by ':'");

/** What a management controller is like: a named profile, or a list of traits. */
export const profile: z.ZodType<ProfileName | readonly Trait[]> = z.union([
  z.array(z.enum(TRAIT_NAMES)).max(TRAIT_NAMES.length),
  z.enum(PROFILE_NAMES),
]);

/** The account of a management controller, and when it locks. */
export const accountFields = {
  username: word.regex(/^[^:]+$/, "must not contain ':'").optional(),
  password: word.optional(),
  lockout_failures: z.int().min(1).max(1_000_000).optional(),
  lockout_seconds: z.number().positive().max(86_400).optional(),
};

export interface Place {
  readonly rackId: string;
  readonly rackNumber: number;
  readonly slot: number;
}

/**
 * Each kind of address has a second octet of its own for the first 255 racks; the blocks of further racks lie above all of
 * those, so that no rack's machine ever sits at the address of another rack's shelf.
 */
const SECOND_OCTET = {
  shelf: (block: number) => (block === 0 ? 64 : 66 + block),
  machineBmc: (block: number) => (block === 0 ? 65 : 108 + 2 * block),
  machineSsh: (block: number) => (block === 0 ? 66 : 109 + 2 * block),
  switchBmc: (block: number) => 188 + block,
  switchOs: (block: number) => 20 + block,
} as const;

/** Rack numbers start at 1, so that no device ever has it. */
export const BASTION_ADDRESS = "127.66.0.1";

/** Who signs in to machines, and to the bastion on the way to them. */
export const SSH_USERNAME = "root";
export const JUMP_USERNAME = "jump";

export const addressOf = (kind: keyof typeof SECOND_OCTET, { rackNumber, slot }: Place): string =>
  `127.${SECOND_OCTET[kind](rackNumber >> 8)}.${rackNumber & 255}.${slot}`;

/** Locally administered; the place makes it unique, the seed makes sites differ. */
export function macOf(options: { prefix: string; seedName: string; place: Place; seeded: SeededValues }): string {
  const { prefix, seedName, place, seeded } = options;
  const rack = place.rackNumber.toString(16).padStart(4, "0");
  const slot = place.slot.toString(16).padStart(2, "0");
  return (`${prefix}${seeded.hex(seedName, 4)}${rack}${slot}`.match(/../g) ?? []).join(":");
}

/** The place as it stands at the end of serial numbers. */
export const placeDigits = ({ rackNumber, slot }: Place): string =>
  `${String(rackNumber).padStart(4, "0")}${String(slot).padStart(2, "0")}`;

/** A version 4 UUID that follows from the seed. */
export function seededUuid(seeded: SeededValues, seedName: string): string {
  const digits = seeded.hex(seedName, 32);
  const variant = "89ab"[Number.parseInt(digits[16] ?? "0", 16) & 3];
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-${variant}${digits.slice(17, 20)}-${digits.slice(20)}`;
}
