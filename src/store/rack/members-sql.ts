import { defaultFirmwareSql, rackFirmwareJson } from "../rack-firmware/rack-firmware.ts";
import { assignedSql } from "./assigned.ts";

/**
 * A run that is not over on the device: it began something and could not read how that ended, or a maintenance before started it for the
 * rack `t` and is gone. While the rack is maintained, its runs are those of now.
 */
const unprovenRun = (kind: string, id: string): string =>
  `(select r.id from runs r where r.target_kind = '${kind}' and r.target_id = ${id} and r.state = 'RUNNING'
      and (coalesce(r.facts -> 'unproven', 'null') <> 'null' or (r.holder_kind = 'rack' and t.state not in ('maintenance', 'validating')))
    limit 1)`;

const holds = (type: string): string =>
  `coalesce((select (c ->> 'status')::boolean from jsonb_array_elements(m.conditions) c where c ->> 'type' = '${type}' limit 1), false)`;

const listOf = (fields: Readonly<Record<string, string>>, alias: string, from: string): string => {
  const pairs = Object.entries(fields).map(([name, sql]) => `'${name}', ${sql}`);
  return `coalesce((select jsonb_agg(jsonb_build_object(${pairs.join(", ")}) order by ${alias}.id) from ${from}), '[]')`;
};

/** A machine that is retired is no part of its rack any more. */
export const TRAYS = listOf(
  {
    id: "m.id",
    slot: "m.slot",
    inMaas: "m.provider = 'maas'",
    bmcAnswers: holds("BMCReachable"),
    assigned: assignedSql("m"),
    reprovision: "h.state",
    exhausted: "coalesce((h.facts ->> 'exhausted')::boolean, false) and h.state = 'failed_firmware_upgrade'",
    unprovenRun: unprovenRun("machine", "m.id"),
  },
  "m",
  "machines m left join host_reprovisions h on h.id = m.id where m.rack = t.id and m.state <> 'RETIRED'",
);

export const SHELVES = listOf(
  {
    id: "s.id",
    state: "s.state",
    power: "s.facts -> 'powerState'",
    capacityWatts: "s.facts -> 'capacityWatts'",
    unprovenRun: unprovenRun("power_shelf", "s.id"),
  },
  "s",
  "power_shelves s where s.rack_id = t.id and s.deleted_at is null",
);

export const SWITCHES = listOf(
  {
    id: "s.id",
    state: "s.state",
    trayIndex: "s.facts -> 'trayIndex'",
    hasOs: `(coalesce(s.facts ->> 'reportedNvosAddress', s.nvos_address) is not null and exists (
      select 1 from expected_switches e where e.facts ->> 'switchId' = s.id and e.nvos_username is not null))`,
    unprovenRun: unprovenRun("switch", "s.id"),
  },
  "s",
  "switches s where s.rack_id = t.id and s.deleted_at is null",
);

export const PROFILE = "(select to_jsonb(p) from rack_profiles p where p.name = t.rack_profile_id)";

export const DEFAULT_FIRMWARE = `(select ${rackFirmwareJson("f")} from rack_profiles p
    join rack_firmware f on f.id = ${defaultFirmwareSql("p.hardware_type")} where p.name = t.rack_profile_id)`;

/** The one that the pending maintenance request names. */
export const REQUESTED_FIRMWARE = `(select ${rackFirmwareJson("f")} from rack_firmware f
   where f.id = (select a ->> 'firmware_version' from jsonb_array_elements(t.maintenance_requested -> 'activities') a
                  where a ->> 'kind' = 'firmware_upgrade' limit 1))`;
