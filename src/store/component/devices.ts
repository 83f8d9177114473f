import { FIRMWARE_CLASSES, type FirmwareClass } from "../../lifecycles/rack-firmware/rack-firmware.ts";
import type { Queryable } from "../postgres/database.ts";
import { oneOf } from "../postgres/stored-json.ts";

/** The kinds of devices that racks have. */
const COMPONENT_KINDS = ["machine", "switch", "power_shelf"] as const;
export type ComponentKind = (typeof COMPONENT_KINDS)[number];

/** Where a device stands, and what its rack's profile says of firmware for it. */
export interface PlacedDevice {
  readonly id: string;
  readonly rackId: string | null;
  readonly hardwareType: string | null;
  readonly class: FirmwareClass;
  /** It is marked for deletion, or retired. */
  readonly isLeaving: boolean;
  /** Of machines: only MAAS touches its BMC. */
  readonly inMaas: boolean;
}

const FROM = {
  machine: { table: "machines", rack: "d.rack", leaving: "d.state = 'RETIRED'", inMaas: "d.provider = 'maas'" },
  switch: { table: "switches", rack: "d.rack_id", leaving: "d.deleted_at is not null", inMaas: "false" },
  power_shelf: { table: "power_shelves", rack: "d.rack_id", leaving: "d.deleted_at is not null", inMaas: "false" },
} as const satisfies Record<ComponentKind, object>;

const isClass = oneOf(FIRMWARE_CLASSES);

interface DeviceRow {
  readonly id: string;
  readonly rack_id: string | null;
  readonly hardware_type: string | null;
  readonly class: string | null;
  readonly leaving: boolean;
  readonly in_maas: boolean;
}

/** Those that there are, by their ids. */
export async function findPlacedDevices(
  db: Queryable,
  kind: ComponentKind,
  ids: readonly string[],
): Promise<ReadonlyMap<string, PlacedDevice>> {
  const { table, rack, leaving, inMaas } = FROM[kind];
  const rows = await db.query<DeviceRow>(
    `select d.id, ${rack} as rack_id, p.hardware_type, p.class, ${leaving} as leaving, ${inMaas} as in_maas from ${table} d
       left join racks r on r.id = ${rack} left join rack_profiles p on p.name = r.rack_profile_id
      where d.id = any($1)`,
    [ids],
  );
  return new Map(
    rows.map((row) => [
      row.id,
      {
        id: row.id,
        rackId: row.rack_id,
        hardwareType: row.hardware_type,
        class: isClass(row.class) ? row.class : "prod",
        isLeaving: row.leaving,
        inMaas: row.in_maas,
      },
    ]),
  );
}
