import type { FirmwareClass } from "../../lifecycles/rack-firmware/rack-firmware.ts";
import type { Queryable } from "../postgres/database.ts";
import type { ComponentKind } from "./devices.ts";

interface KnownRackRow {
  readonly id: string;
  readonly profileId: string | null;
  readonly hardwareType: string | null;
  readonly hasProfile: boolean;
  readonly class: FirmwareClass;
  readonly carriesOut: string | null;
  readonly devices: readonly { readonly id: string; readonly kind: ComponentKind }[];
}

/** Racks with their profiles, and the devices that are there to stay and that are theirs to work on: no machine that is in MAAS. */
export const listKnownRacks = (db: Queryable, ids: readonly string[]): Promise<KnownRackRow[]> =>
  db.query<KnownRackRow>(
    `select r.id, r.rack_profile_id as "profileId", p.hardware_type as "hardwareType", p.name is not null as "hasProfile",
            coalesce(p.class, 'prod') as class, r.state_data -> 'request' ->> 'id' as "carriesOut",
            (select coalesce(jsonb_agg(jsonb_build_object('id', d.id, 'kind', d.kind) order by d.kind, d.id), '[]') from (
               select id, 'machine' as kind from machines where rack = r.id and state <> 'RETIRED' and provider <> 'maas'
               union all select id, 'switch' from switches where rack_id = r.id and deleted_at is null
               union all select id, 'power_shelf' from power_shelves where rack_id = r.id and deleted_at is null) d) as devices
       from racks r left join rack_profiles p on p.name = r.rack_profile_id
      where r.id = any($1) and r.deleted_at is null`,
    [ids],
  );
