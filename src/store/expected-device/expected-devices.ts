import { z } from "zod";
import { messageOf } from "../../kernel/errors.ts";
import { GONE, type Lifecycle } from "../../kernel/lifecycle.ts";
import {
  EXPLORE_RESULTS,
  type ExistingDevice,
  type ExpectedDevice,
  type ExploreResult,
} from "../../lifecycles/expected-device/expected-device.ts";
import { sharesBmcCredentials } from "../device/bmc-credentials.ts";
import { deviceOfRackPlace } from "../device/part-of-rack.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import { parseRows, type ThingStore } from "../lifecycle/things.ts";
import type { Queryable } from "../postgres/database.ts";

export interface ExpectedDeviceRecord extends ExpectedDevice {
  readonly bmcUsername: string;
  readonly retainCredentials: boolean;
  readonly createdAt: Date;
  /** How finding it goes, as it is shown. */
  readonly explored: ExploreResult;
  readonly nextExploreAt: Date | null;
  /** The error of the last failed pass; the row itself may not have it. */
  readonly lastError: string | null;
}

/** What one kind of expected devices has of its own. */
export interface ExpectedDeviceSpec<X extends object> {
  readonly lifecycle: Lifecycle<ExpectedDevice & X>;
  readonly table: string;
  readonly serialColumn: string;
  /** The fact that names the device that it became. */
  readonly link: string;
  readonly device: { readonly kind: string; readonly table: string };
  /** Columns that only this kind has; with `t` for the table. */
  readonly columns?: readonly string[];
  readonly parse: (row: ExpectedRow) => X;
}

export interface ExpectedRow extends StateColumns {
  facts: unknown;
  name: string;
  description: string;
  labels: Record<string, string | null>;
  rack_id: string | null;
  bmc_mac: string;
  bmc_username: string;
  bmc_address: string | null;
  bmc_port: number | null;
  serial: string;
  bmc_retain_credentials: boolean;
  created_at: Date;
  existing_id: string | null;
  existing_facts: { readonly serial?: string | null; readonly certificateFingerprint?: string | null } | null;
  existing_scheme: ExistingDevice["scheme"];
  existing_trust: ExistingDevice["trust"];
  existing_deleted_at: Date | null;
  explored: ExploreResult;
  next_explore_at: Date | null;
  last_error: string | null;
  /** Those of the kind. */
  [column: string]: unknown;
}

export interface ExpectedDeviceFilter {
  readonly ids?: readonly string[];
  readonly bmcMac?: string;
  readonly bmcMacs?: readonly string[];
  readonly rackId?: string;
}

/** The rows of one kind of expected devices. */
export interface ExpectedDevices<R extends ExpectedDeviceRecord> {
  /** In the order of their MAC addresses. */
  list(db: Queryable, filter?: ExpectedDeviceFilter): Promise<R[]>;
  readonly store: ThingStore<R>;
  /** What a record is read from, for lists. */
  readonly columns: string;
  readonly from: string;
  readonly countFrom: string;
  /** One row that does not parse must not hide the others from a list: what was found out about it is left away. */
  parse(row: ExpectedRow): R;
}

const factsSchema = z.object({
  explored: z.enum(EXPLORE_RESULTS).nullable().default(null),
  exploredAt: z.string().nullable().default(null),
  certificateFingerprint: z.string().nullable().default(null),
});

/** A pass that could not be finished says so by the work's own error alone. */
export const EXPLORED = `case when t.state = 'exploring' and w.last_error is not null then 'failed' else coalesce(t.facts ->> 'explored', 'pending') end`;

export function defineExpectedDevices<X extends object>(
  spec: ExpectedDeviceSpec<X>,
): ExpectedDevices<ExpectedDeviceRecord & X> {
  type R = ExpectedDeviceRecord & X;
  const { lifecycle, table, device } = spec;
  const own = (spec.columns ?? []).map((column) => `, t.${column}`).join("");
  const columns = `${STATE_COLUMNS}, t.name, t.description, t.labels, t.rack_id, t.bmc_mac, t.bmc_username, t.bmc_address, t.bmc_port,
         t.${spec.serialColumn} as serial, t.bmc_retain_credentials, t.created_at${own},
         s.id as existing_id, jsonb_build_object('serial', s.facts -> 'serial', 'certificateFingerprint', s.facts -> 'certificateFingerprint') as existing_facts, s.bmc_scheme as existing_scheme, s.bmc_trust as existing_trust,
         s.deleted_at as existing_deleted_at, nullif(w.wake_at, 'infinity') as next_explore_at, w.last_error, ${EXPLORED} as explored`;
  const work = `left join work w on w.kind = '${lifecycle.kind}' and w.id = t.id`;
  const from = `${table} t left join ${device.table} s on s.bmc_mac = t.bmc_mac ${work}`;
  const select = `select ${columns} from ${from}`;

  const parseRecord = (row: ExpectedRow): R => ({
    ...parseStateColumns(row),
    id: row.id,
    bmc: { mac: row.bmc_mac, address: row.bmc_address, port: row.bmc_port },
    serial: row.serial,
    name: row.name,
    description: row.description,
    labels: row.labels,
    rackId: row.rack_id,
    facts: factsSchema.parse(row.facts),
    deviceId: z
      .string()
      .nullable()
      .default(null)
      .parse((row.facts as Record<string, unknown>)[spec.link]),
    existing: parseExisting(row),
    bmcUsername: row.bmc_username,
    retainCredentials: row.bmc_retain_credentials,
    createdAt: row.created_at,
    explored: row.explored,
    nextExploreAt: row.next_explore_at,
    lastError: row.last_error,
    ...spec.parse(row),
  });
  const parse = (row: ExpectedRow): R => {
    try {
      return parseRecord(row);
    } catch (error) {
      const lastError = `its row cannot be read: ${messageOf(error)}`;
      return { ...parseRecord({ ...row, facts: {} }), explored: "failed", lastError };
    }
  };

  return {
    columns,
    from,
    countFrom: `${table} t ${work}`,
    parse,
    async list(db, filter = {}) {
      const values: unknown[] = [];
      const where: string[] = ["true"];
      const add = (condition: (at: string) => string, value: unknown) => {
        if (value !== undefined) where.push(condition(`$${values.push(value)}`));
      };
      add((at) => `t.id = any(${at})`, filter.ids);
      add((at) => `t.bmc_mac = ${at}`, filter.bmcMac);
      add((at) => `t.bmc_mac = any(${at})`, filter.bmcMacs);
      add((at) => `t.rack_id = ${at}`, filter.rackId);
      const rows = await db.query<ExpectedRow>(`${select} where ${where.join(" and ")} order by t.bmc_mac`, values);
      return rows.map(parse);
    },
    store: {
      lifecycle: lifecycle as Lifecycle<R>,
      table,
      place: deviceOfRackPlace(table),
      requests: {},
      related: {
        device: {
          of: ({ existing }) => existing && { kind: device.kind, id: existing.id },
          // While a device that is to go has the BMC, its row waits for that.
          awaits: {
            kind: device.kind,
            states: [GONE],
            waiting: async (db, gone) => {
              const macs = (gone as readonly ExpectedDevice[]).map(({ bmc }) => bmc.mac);
              const text = `select id from ${table} where bmc_mac = any($1) and state = 'exploring'`;
              return (await db.query<{ id: string }>(text, [macs])).map(({ id }) => id);
            },
          },
        },
      },
      ...sharesBmcCredentials,
      async load(db, ids) {
        return parseRows(await db.query<ExpectedRow>(`${select} where t.id = any($1)`, [ids]), parseRecord);
      },
    },
  };
}

function parseExisting(row: ExpectedRow): ExistingDevice | null {
  if (row.existing_id === null) return null;
  return {
    id: row.existing_id,
    serial: row.existing_facts?.serial ?? null,
    scheme: row.existing_scheme,
    trust: row.existing_trust,
    certificateFingerprint: row.existing_facts?.certificateFingerprint ?? null,
    markedForDeletion: row.existing_deleted_at !== null,
  };
}
