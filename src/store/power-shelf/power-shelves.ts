import { z } from "zod";
import { POWER_STATES } from "../../capabilities/power-control.ts";
import { move } from "../../kernel/effects.ts";
import { messageOf } from "../../kernel/errors.ts";
import { parsePowerShelfId } from "../../kernel/ids.ts";
import { expectedPowerShelfLifecycle } from "../../lifecycles/expected-power-shelf/lifecycle.ts";
import { powerShelfLifecycle } from "../../lifecycles/power-shelf/lifecycle.ts";
import {
  type EndedRequest,
  MAINTENANCE_OPERATIONS,
  type MaintenanceRequest,
  type PowerShelf,
  type PowerShelfFacts,
  REQUEST_OUTCOMES,
} from "../../lifecycles/power-shelf/power-shelf.ts";
import { sharesBmcCredentials } from "../device/bmc-credentials.ts";
import { deviceTraits, type VersionedMetadata } from "../device/device.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import { parseRows, type ThingStore } from "../lifecycle/things.ts";
import type { Queryable } from "../postgres/database.ts";

/** A shelf with what the controller does not need: its names, and what has been. */
export interface PowerShelfRecord extends PowerShelf, VersionedMetadata {
  readonly createdAt: Date;
  readonly lastMaintenanceRequest: EndedRequest | null;
  readonly failures: number;
  /** The error of the last failed pass; the thing itself may not have it. */
  readonly lastError: string | null;
  readonly nextCheckAt: Date | null;
}

const health = z.enum(["ok", "warning", "critical", "unknown"]).nullable();
const factsSchema = z.object({
  serial: z.string().nullable().default(null),
  vendor: z.string().nullable().default(null),
  model: z.string().nullable().default(null),
  bmcFirmware: z.string().nullable().default(null),
  certificateFingerprint: z.string().nullable().default(null),
  capacityWatts: z.number().nullable().default(null),
  voltage: z.number().nullable().default(null),
  powerState: z.enum(POWER_STATES).nullable().default(null),
  powerSupplies: z
    .array(
      z.object({
        name: z.string(),
        serial: z.string().nullable(),
        firmware: z.string().nullable(),
        on: z.boolean().nullable(),
        health: z.enum(["ok", "warning", "critical"]).nullable(),
      }),
    )
    .default([]),
  health: health.default(null),
  sensors: z.array(z.object({ name: z.string(), value: z.number(), unit: z.string() })).default([]),
  observedAt: z.string().nullable().default(null),
  deviceLog: z
    .array(
      z.object({
        id: z.string(),
        at: z.string().nullable(),
        severity: z.enum(["ok", "warning", "critical"]),
        message: z.string(),
      }),
    )
    .default([]),
  deviceLogReadAt: z.string().nullable().default(null),
  commandedAt: z
    .object({ operation: z.string().nullable(), requestId: z.string().nullable(), at: z.string() })
    .nullable()
    .default(null),
  cancelRequest: z.object({ requestId: z.string(), by: z.string(), at: z.string() }).nullable().default(null),
});

const requestSchema = z
  .object({
    id: z.string(),
    operation: z.enum(MAINTENANCE_OPERATIONS),
    initiator: z.string(),
    requested_at: z.coerce.date(),
    traceparent: z.string().optional(),
    origin: z.object({ kind: z.string(), id: z.string() }).optional(),
  })
  .transform(({ requested_at, ...rest }): MaintenanceRequest => ({ ...rest, requestedAt: requested_at }));
const endedSchema = z
  .object({
    id: z.string(),
    operation: z.enum(MAINTENANCE_OPERATIONS),
    initiator: z.string(),
    requested_at: z.coerce.date(),
    traceparent: z.string().optional(),
    origin: z.object({ kind: z.string(), id: z.string() }).optional(),
    outcome: z.enum(REQUEST_OUTCOMES),
    ended_at: z.coerce.date(),
    message: z.string().nullable().default(null),
  })
  .transform(
    ({ requested_at, ended_at, ...rest }): EndedRequest => ({ ...rest, requestedAt: requested_at, endedAt: ended_at }),
  );

interface ShelfRow extends StateColumns {
  rack_id: string | null;
  bmc_mac: string;
  bmc_address: string;
  bmc_port: number;
  bmc_scheme: "https" | "http";
  bmc_trust: "ca" | "pin" | "off";
  deleted_at: Date | null;
  power_shelf_maintenance_requested: unknown;
  facts: unknown;
  expected_id: string | null;
}

const COLUMNS = `${STATE_COLUMNS}, t.rack_id, t.bmc_mac, t.bmc_address, t.bmc_port, t.bmc_scheme, t.bmc_trust, t.deleted_at,
  t.power_shelf_maintenance_requested, e.id as expected_id`;
const EXPECTED = `left join expected_power_shelves e on e.facts ->> 'powerShelfId' = t.id and e.state = 'linked'`;

function parseShelf(row: ShelfRow): PowerShelf {
  return {
    ...parseStateColumns(row),
    id: parsePowerShelfId(row.id, "id"),
    rackId: row.rack_id,
    bmc: {
      mac: row.bmc_mac,
      address: row.bmc_address,
      port: row.bmc_port,
      scheme: row.bmc_scheme,
      trust: row.bmc_trust,
    },
    facts: factsSchema.parse(row.facts) satisfies PowerShelfFacts,
    deletedAt: row.deleted_at,
    maintenanceRequest: requestSchema.nullable().parse(row.power_shelf_maintenance_requested),
    expectedId: row.expected_id,
  };
}

export const powerShelfTraits = deviceTraits<PowerShelfRecord>({
  noun: "power shelf",
  command: "power-shelf",
  parseId: parsePowerShelfId,
  list: (db, ids) => listPowerShelves(db, { ids }),
  metadataOf: (shelf) => shelf,
  deletion: {
    moves: ({ expectedId }) =>
      expectedId === null ? [] : [move(expectedPowerShelfLifecycle, expectedId, "power_shelf_deleted")],
  },
});

export const powerShelfStore: ThingStore<PowerShelf> = {
  lifecycle: powerShelfLifecycle,
  table: "power_shelves",
  requests: {
    maintenanceRequest: { column: "power_shelf_maintenance_requested", lastColumn: "last_maintenance_request" },
  },
  ...sharesBmcCredentials,
  device: powerShelfTraits,
  async load(db, ids) {
    const rows = await db.query<ShelfRow>({
      name: "power_shelves.load",
      text: `select ${COLUMNS} from power_shelves t ${EXPECTED} where t.id = any($1)`,
      values: [ids],
    });
    return parseRows(rows, parseShelf);
  },
};

export interface PowerShelfFilter {
  readonly ids?: readonly string[];
  readonly name?: string;
  readonly rackId?: string;
  readonly state?: string;
  readonly bmcMac?: string;
  readonly deleted?: "exclude" | "only" | "include";
}

export interface RecordRow extends ShelfRow {
  name: string;
  description: string;
  labels: Record<string, string | null>;
  metadata_version: number;
  metadata_changed_at: Date;
  created_at: Date;
  last_maintenance_request: unknown;
  failures: number | null;
  last_error: string | null;
  next_check_at: Date | null;
}

const DELETED = { exclude: "t.deleted_at is null", only: "t.deleted_at is not null", include: "true" } as const;

/** What a record is read from, for lists. */
export const RECORD_COLUMNS = `${COLUMNS}, t.name, t.description, t.labels, t.metadata_version, t.metadata_changed_at, t.created_at,
            t.last_maintenance_request, w.failures, w.last_error, nullif(w.wake_at, 'infinity') as next_check_at`;
export const RECORD_FROM = `power_shelves t ${EXPECTED} left join work w on w.kind = 'power_shelf' and w.id = t.id`;

/** Shelves that satisfy every filter, in the order of their ids. */
export async function listPowerShelves(db: Queryable, filter: PowerShelfFilter = {}): Promise<PowerShelfRecord[]> {
  const { conditions, values } = conditionsOf(filter);
  const rows = await db.query<RecordRow>(
    `select ${RECORD_COLUMNS} from ${RECORD_FROM} where ${conditions} order by t.id`,
    values,
  );
  return rows.map(parseRecord);
}

/** The ids of the shelves that these BMCs have, by MAC address. */
export async function findShelvesOfBmcs(db: Queryable, macs: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (macs.length === 0) return new Map();
  const rows = await db.query<{ id: string; bmc_mac: string }>(
    "select id, bmc_mac from power_shelves where bmc_mac = any($1)",
    [macs],
  );
  return new Map(rows.map(({ id, bmc_mac }) => [bmc_mac, id]));
}

export async function listPowerShelfIds(db: Queryable, filter: PowerShelfFilter): Promise<string[]> {
  const { conditions, values } = conditionsOf(filter);
  const rows = await db.query<{ id: string }>(
    `select t.id from power_shelves t where ${conditions} order by t.id`,
    values,
  );
  return rows.map(({ id }) => id);
}

function conditionsOf(filter: PowerShelfFilter): { conditions: string; values: unknown[] } {
  const values: unknown[] = [];
  const where: string[] = [DELETED[filter.deleted ?? "include"]];
  const add = (condition: (at: string) => string, value: unknown) => {
    if (value !== undefined) where.push(condition(`$${values.push(value)}`));
  };
  add((at) => `t.id = any(${at})`, filter.ids);
  add((at) => `t.name = ${at}`, filter.name);
  add((at) => `t.rack_id = ${at}`, filter.rackId);
  add((at) => `t.state = ${at}`, filter.state);
  add((at) => `t.bmc_mac = ${at}`, filter.bmcMac);
  return { conditions: where.join(" and "), values };
}

/** One row that does not parse must not hide the others from a list: it is shown as far as it can be read. */
export function parseRecord(row: RecordRow): PowerShelfRecord {
  try {
    return parseReadable(row);
  } catch (error) {
    const reason = `its row cannot be read: ${messageOf(error)}`;
    const rest = { ...row, facts: {}, power_shelf_maintenance_requested: null, last_maintenance_request: null };
    return { ...parseReadable(rest), outcome: { type: "failing", reason, cause: { code: "quarantined" } } };
  }
}

function parseReadable(row: RecordRow): PowerShelfRecord {
  return {
    ...parseShelf(row),
    name: row.name,
    description: row.description,
    labels: row.labels,
    metadataVersion: row.metadata_version,
    metadataChangedAt: row.metadata_changed_at,
    createdAt: row.created_at,
    lastMaintenanceRequest: endedSchema.nullable().parse(row.last_maintenance_request),
    failures: row.failures ?? 0,
    lastError: row.last_error,
    nextCheckAt: row.next_check_at,
  };
}
