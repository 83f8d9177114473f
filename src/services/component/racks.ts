import type { FirmwareClass } from "../../lifecycles/rack-firmware/rack-firmware.ts";
import { listKnownRacks } from "../../store/component/racks.ts";
import type { Queryable } from "../../store/postgres/database.ts";

/** A rack, as far as its firmware goes. */
export interface KnownRack {
  readonly id: string;
  readonly profileId: string | null;
  /** Null: its profile is not in the catalogue, or says none. */
  readonly hardwareType: string | null;
  readonly hasProfile: boolean;
  readonly class: FirmwareClass;
  /** The request that its maintenance carries out; null while it is not in maintenance by one. */
  readonly carriesOut: string | null;
  readonly devices: readonly { readonly id: string; readonly kind: "machine" | "switch" | "power_shelf" }[];
}

export const findKnownRacks = async (db: Queryable, ids: readonly string[]): Promise<ReadonlyMap<string, KnownRack>> =>
  new Map((await listKnownRacks(db, ids)).map((rack) => [rack.id, rack]));
