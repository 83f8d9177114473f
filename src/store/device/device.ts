import type { MoveEffect } from "../../kernel/effects.ts";
import type { Thing } from "../../kernel/lifecycle.ts";
import type { Queryable } from "../postgres/database.ts";

/** What people call a device. The table has it in the columns `name`, `description` and `labels`. */
export interface Metadata {
  readonly name: string;
  readonly description: string;
  readonly labels: Readonly<Record<string, string | null>>;
}

/** The columns `metadata_version` and `metadata_changed_at` keep the version: it grows with the metadata alone. */
export interface VersionedMetadata extends Metadata {
  readonly metadataVersion: number;
  readonly metadataChangedAt: Date;
}

/**
 * What the store of a thing says to make it a device. `services/device/` then gives the kind its health reports and histories, and
 * metadata and deletion where the traits have them; nothing else has to be written for it.
 */
export interface DeviceTraits<D extends Thing = Thing> {
  /** What people call one device, such as "power shelf". */
  readonly noun: string;
  /** The word of the command line, such as "power-shelf". */
  readonly command: string;
  /** @throws AppError invalid_argument that names the field. */
  parseId(text: string, field: string): string;
  /** Devices by their ids. A row that cannot be read whole is in the list as far as it can be read. */
  list(db: Queryable, ids: readonly string[]): Promise<readonly D[]>;
  /** Throws where a device takes no health reports any more. */
  readonly refuseReports?: (device: D) => void;
  /** Absent: devices of this kind have no metadata of their own. */
  readonly metadataOf?: (device: D) => VersionedMetadata;
  /** Absent: devices of this kind are never deleted. */
  readonly deletion?: DeviceDeletion<D>;
}

/** The table has a column `deleted_at`, a mark that guards read; the lifecycle has the caller's verb `force_delete`. */
export interface DeviceDeletion<D extends Thing = Thing> {
  /** Moves of other things that a forced deletion makes in the same commit. */
  readonly moves?: (device: D) => readonly MoveEffect[];
}

/** The traits of one kind among those of all kinds: the kind's own type ends here, since services treat all devices alike. */
export const deviceTraits = <D extends Thing>(traits: DeviceTraits<D>): DeviceTraits =>
  traits as unknown as DeviceTraits;
