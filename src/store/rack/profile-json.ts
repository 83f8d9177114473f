import type { ProfilePart, RackProfile } from "../../lifecycles/rack/profile.ts";
import { isNumber, isText, listOf, oneOf, orNull, REQUIRED, readerOf } from "../postgres/stored-json.ts";

interface StoredPart extends Omit<ProfilePart, "slotIds"> {
  readonly slot_ids: readonly number[];
}
const readPart = readerOf<StoredPart>({
  count: [isNumber, 0],
  name: [orNull(isText), null],
  vendor: [orNull(isText), null],
  slot_ids: [listOf(isNumber), []],
  watts: [orNull(isNumber), null],
});
const partOf = (stored: unknown): ProfilePart => {
  const { slot_ids: slotIds, ...part } = readPart(stored);
  return { ...part, slotIds };
};

interface StoredProfile {
  readonly name: string;
  readonly hardware_type: string | null;
  readonly topology: string | null;
  readonly class: "dev" | "prod" | null;
}
const readProfile = readerOf<StoredProfile>({
  name: [isText, REQUIRED],
  hardware_type: [orNull(isText), null],
  topology: [orNull(isText), null],
  class: [orNull(oneOf(["dev", "prod"])), null],
});

/** A row of the catalogue of profiles, as JSON. A profile that names no class is of production. */
export function parseProfile(stored: unknown): RackProfile {
  const { name, hardware_type: hardwareType, topology, class: given } = readProfile(stored);
  const { compute, switches, power_shelves } = stored as { readonly [part: string]: unknown };
  return {
    name,
    hardwareType,
    topology,
    class: given ?? "prod",
    compute: partOf(compute),
    switches: partOf(switches),
    powerShelves: partOf(power_shelves),
  };
}
