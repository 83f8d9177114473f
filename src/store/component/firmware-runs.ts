import type { MaintenanceScope, WantedVersions } from "../../lifecycles/rack/rack.ts";
import type { FirmwareDevice } from "../../lifecycles/rack-firmware/rack-firmware.ts";
import type { Run } from "../../runs/model/run.ts";
import type { Queryable } from "../postgres/database.ts";
import { parseRun, RUN_COLUMNS, type RunRow } from "../run/runs.ts";
import type { ComponentKind } from "./devices.ts";

/** A tray's own upgrade is a run on its host_reprovision. */
const TARGETS = {
  machine: ["machine", "host_reprovision"],
  switch: ["switch"],
  power_shelf: ["power_shelf"],
} as const satisfies Record<ComponentKind, readonly string[]>;

/** Itself, or by following what a rack manager does. */
const WRITES_FIRMWARE = `(t.plan @> '{"steps": [{"kind": "update_firmware"}]}' or t.plan @> '{"steps": [{"kind": "follow_firmware_job"}]}')`;

export interface FirmwareRunFilter {
  readonly kind: ComponentKind;
  readonly ids: readonly string[];
  /** Only runs on behalf of a rack, from one time to another. */
  readonly ofRack?: { readonly rackId: string; readonly from: Date; readonly to: Date };
}

/** The latest run of each device that wrote firmware to it, by the device's id. */
export async function findFirmwareRuns(db: Queryable, filter: FirmwareRunFilter): Promise<ReadonlyMap<string, Run>> {
  const { kind, ids, ofRack } = filter;
  const rows = await db.query<RunRow & { target_id: string }>(
    `select distinct on (t.target_id) ${RUN_COLUMNS} from runs t
      where t.target_kind = any($1) and t.target_id = any($2) and ${WRITES_FIRMWARE}
        and ($3::text is null or exists (select from runs p where p.id = t.parent_run_id and p.target_kind = 'rack' and p.target_id = $3
              and p.created_at >= $4 and p.created_at <= $5))
      order by t.target_id, t.created_at desc, t.id desc`,
    [TARGETS[kind], ids, ofRack?.rackId ?? null, ofRack?.from ?? null, ofRack?.to ?? null],
  );
  return new Map(rows.map((row) => [row.target_id, parseRun(row)]));
}

/** What a run has proven of one component. */
export interface WrittenVersion {
  readonly component: string;
  readonly version: string;
  readonly at: Date;
}

/** What takes a restart before it runs was proven by the step that ordered it. */
const IS_ACTIVATED = `exists (
  select from jsonb_array_elements(t.plan -> 'steps') a, jsonb_array_elements(t.facts -> 'steps') visit
   where a ->> 'kind' = 'activate_firmware' and a -> 'payload' ->> 'activation' = w ->> 'activation'
     and visit ->> 'name' = a ->> 'name' and visit ->> 'state' = 'SUCCEEDED')`;

/**
 * What runs have written to each device: of each component what was proven last, also by a run that failed or was canceled later. What
 * only a rack manager said is left out.
 */
export async function findWrittenVersions(
  db: Queryable,
  kind: ComponentKind,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly WrittenVersion[]>> {
  const rows = await db.query<WrittenVersion & { id: string }>(
    `select distinct on (t.target_id, w ->> 'component') t.target_id as id, w ->> 'component' as component, w ->> 'version' as version,
            coalesce(t.facts ->> 'finishedAt', v.visit ->> 'finishedAt')::timestamptz as at
       from runs t
            cross join lateral jsonb_array_elements(t.plan -> 'steps') s
            cross join lateral jsonb_array_elements(case s ->> 'kind' when 'update_firmware' then jsonb_build_array(s -> 'payload')
                                                     when 'follow_firmware_job' then s -> 'payload' -> 'wanted' else '[]' end) w
            left join lateral (select visit from jsonb_array_elements(t.facts -> 'steps') visit where visit ->> 'name' = s ->> 'name' limit 1) v on true
      where t.target_kind = any($1) and t.target_id = any($2) and ${WRITES_FIRMWARE} and w ->> 'component' is not null
        and w ->> 'version' is not null and coalesce(t.facts ->> 'finishedAt', v.visit ->> 'finishedAt') is not null
        and (t.state = 'SUCCEEDED' or (v.visit ->> 'state' = 'SUCCEEDED' and (w ->> 'activation' = 'none' or ${IS_ACTIVATED})))
        and not t.facts @> '{"steps": [{"verdict": "reported"}]}'
      order by t.target_id, w ->> 'component', t.created_at desc, t.id desc`,
    [TARGETS[kind], ids],
  );
  return Map.groupBy(rows, ({ id }) => id);
}

/** The record that the last maintenance of a rack with firmware for a device wanted it to have. */
export interface LastWanted {
  readonly firmwareId: string;
  readonly components: WantedVersions[FirmwareDevice];
}

const RUNS_LOOKED_AT = 100;

/** By kind and id of the device; of devices that no maintenance with firmware has covered, as far as runs go back, nothing. */
export async function findLastWanted(
  db: Queryable,
  rackId: string,
): Promise<ReadonlyMap<`${FirmwareDevice} ${string}`, LastWanted>> {
  const rows = await db.query<LastWanted & { device: FirmwareDevice; id: string }>(
    `with plans as (
       select t.created_at, s -> 'payload' as payload
         from (select created_at, plan from runs where target_kind = 'rack' and target_id = $1 order by created_at desc limit ${RUNS_LOOKED_AT}) t
              cross join lateral jsonb_array_elements(t.plan -> 'steps') s where s -> 'payload' ? 'firmware_id')
     select distinct on (d.device, e.id) d.device, e.id, payload ->> 'firmware_id' as "firmwareId", c.components
       from plans cross join unnest(array['compute', 'switch', 'power_shelf']) as d (device)
            cross join lateral jsonb_array_elements_text(payload -> d.device -> 'devices') as e (id)
            cross join lateral (select coalesce(jsonb_agg(jsonb_build_object('component', w -> 'component', 'version', w -> 'version',
                'targets', coalesce(w -> 'targets', '[]'))), '[]') as components from jsonb_array_elements(payload -> d.device -> 'components') w) c
      order by d.device, e.id, plans.created_at desc`,
    [rackId],
  );
  return new Map(rows.map(({ device, id, firmwareId, components }) => [`${device} ${id}`, { firmwareId, components }]));
}

/** The active run of its own that a device has; the database has room for one. */
export async function findActiveRun(db: Queryable, kind: ComponentKind, id: string): Promise<string | undefined> {
  const text = `select id from runs where target_kind = $1 and target_id = $2 and parent_run_id is null and state in ('PENDING', 'RUNNING')`;
  return (await db.query<{ id: string }>(text, [kind, id]))[0]?.id;
}

/** A request for firmware that somebody made of a rack. It stays when the journal has forgotten it: the newest 250 of each rack do. */
export interface FirmwareRequest {
  readonly requestId: string;
  readonly rackId: string;
  readonly at: Date;
  /** Null: the default of the rack's hardware type. */
  readonly firmwareId: string | null;
  /** Null while it has not ended. */
  readonly outcome: string | null;
  readonly endedAt: Date | null;
  readonly message: string | null;
  /** The devices that it names; null, and where all lists are empty: the whole rack. */
  readonly scope: MaintenanceScope | null;
}

export interface FirmwareRequestFilter {
  readonly requestId?: string;
  readonly firmwareId?: string;
  readonly rackIds?: readonly string[];
}

const REQUEST_COLUMNS = `request_id as "requestId", rack_id as "rackId", requested_at as at, firmware_id as "firmwareId", outcome,
  ended_at as "endedAt", message, scope`;

/** Of each rack the newest request, and those that have not ended: of one rack the newest first. */
export async function findCurrentFirmwareRequests(
  db: Queryable,
  rackIds: readonly string[],
): Promise<ReadonlyMap<string, readonly FirmwareRequest[]>> {
  const requests = await db.query<FirmwareRequest>(
    `select f.* from unnest($1::text[]) as rack (id)
            cross join lateral (select ${REQUEST_COLUMNS} from rack_firmware_applied a where a.rack_id = rack.id
              and (a.outcome is null or a.requested_at = (select max(b.requested_at) from rack_firmware_applied b where b.rack_id = rack.id))) f
      order by f.at desc, f."requestId"`,
    [rackIds],
  );
  return Map.groupBy(requests, ({ rackId }) => rackId);
}

/** The newest first. */
export async function listFirmwareRequests(
  db: Queryable,
  { requestId, firmwareId, rackIds }: FirmwareRequestFilter,
  limit: number,
): Promise<readonly FirmwareRequest[]> {
  return db.query<FirmwareRequest>(
    `select ${REQUEST_COLUMNS} from rack_firmware_applied
      where ($1::text is null or request_id = $1) and ($2::text[] is null or rack_id = any($2)) and ($3::text is null or firmware_id = $3)
      order by requested_at desc, request_id limit ${Math.floor(limit)}`,
    [requestId ?? null, rackIds ?? null, firmwareId ?? null],
  );
}
