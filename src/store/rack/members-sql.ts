import { assignedSql } from "./assigned.ts";

/** A run that began something on the device and could not read how it ended. It holds the device. */
const unprovenRun = (kind: string, id: string): string =>
  `(select r.id from runs r where r.target_kind = '${kind}' and r.target_id = ${id} and r.state = 'RUNNING'
      and r.facts -> 'unproven' is not null and r.facts -> 'unproven' <> 'null' limit 1)`;

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
    bmcAnswers: holds("BMCReachable"),
    assigned: assignedSql("m"),
    unprovenRun: unprovenRun("machine", "m.id"),
  },
  "m",
  "machines m where m.rack = t.id and m.state <> 'RETIRED'",
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
