import { z } from "zod";
import { POWER_STATES } from "../../capabilities/power-control.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { BmcDevice, BmcDeviceFacts } from "../../lifecycles/device/bmc-device.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import { type Loaded, parseRows } from "../lifecycle/things.ts";
import type { Queryable } from "../postgres/database.ts";
import type { VersionedMetadata } from "./device.ts";

/** A device with what the controller does not need: its names, and what has been. */
export interface BmcDeviceRecord extends BmcDevice, VersionedMetadata {
  readonly createdAt: Date;
  readonly failures: number;
  /** The error of the last failed pass; the thing itself may not have it. */
  readonly lastError: string | null;
  readonly nextCheckAt: Date | null;
}

/** The facts that devices of every kind have. */
export const bmcDeviceFacts = {
  serial: z.string().nullable().default(null),
  vendor: z.string().nullable().default(null),
  model: z.string().nullable().default(null),
  bmcFirmware: z.string().nullable().default(null),
  certificateFingerprint: z.string().nullable().default(null),
  powerState: z.enum(POWER_STATES).nullable().default(null),
  health: z.enum(["ok", "warning", "critical", "unknown"]).nullable().default(null),
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
} satisfies { readonly [fact in keyof BmcDeviceFacts]: z.ZodType<BmcDeviceFacts[fact]> };

export interface BmcDeviceRow extends StateColumns {
  rack_id: string | null;
  bmc_mac: string;
  bmc_address: string;
  bmc_port: number;
  bmc_scheme: "https" | "http";
  bmc_trust: "ca" | "pin" | "off";
  deleted_at: Date | null;
  facts: unknown;
  labels: Record<string, string | null>;
  expected_id: string | null;
  /** Those of the kind. */
  [column: string]: unknown;
}

export interface BmcDeviceRecordRow extends BmcDeviceRow {
  name: string;
  description: string;
  metadata_version: number;
  metadata_changed_at: Date;
  created_at: Date;
  failures: number | null;
  last_error: string | null;
  next_check_at: Date | null;
}

export interface BmcDeviceFilter {
  readonly ids?: readonly string[];
  readonly name?: string;
  readonly rackId?: string;
  readonly state?: string;
  readonly bmcMac?: string;
  readonly deleted?: "exclude" | "only" | "include";
}

/** A condition of the filter, with the place of its value; an undefined value adds nothing. */
export type AddCondition = (condition: (at: string) => string, value: unknown) => void;

interface BmcDeviceSpec<D extends BmcDevice, R extends D & BmcDeviceRecord, F extends BmcDeviceFilter> {
  readonly kind: string;
  readonly table: string;
  /** The expected rows that devices are made from. */
  readonly expected: { readonly table: string; readonly link: string };
  /** Columns and expressions of the kind, with `t` for its table: those that guards and handlers read, and those that only records have. */
  readonly columns: readonly string[];
  readonly recordColumns?: readonly string[];
  /** What devices of every kind have is parsed already. */
  readonly parse: (row: BmcDeviceRow, shared: BmcDevice) => D;
  readonly parseRecord: (row: BmcDeviceRecordRow, shared: D & BmcDeviceRecord) => R;
  /** What takes the place of columns that cannot be read. */
  readonly blank?: Readonly<Record<string, unknown>>;
  readonly conditions?: (filter: F, add: AddCondition) => void;
}

/** The table of one kind of devices. */
export interface BmcDevices<D extends BmcDevice, R extends BmcDeviceRecord, F extends BmcDeviceFilter> {
  load(db: Queryable, ids: readonly string[]): Promise<Loaded<D>>;
  /** Devices that satisfy every filter, in the order of their ids. */
  list(db: Queryable, filter?: F | BmcDeviceFilter): Promise<R[]>;
  listIds(db: Queryable, filter: F): Promise<string[]>;
  /** The ids of the devices that these BMCs have, by MAC address. */
  findOfBmcs(db: Queryable, macs: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** What a record is read from, for lists. */
  readonly columns: string;
  readonly from: string;
  readonly countFrom: string;
  /** One row that does not parse must not hide the others from a list: it is shown as far as it can be read. */
  parse(row: BmcDeviceRecordRow): R;
}

const DELETED = { exclude: "t.deleted_at is null", only: "t.deleted_at is not null", include: "true" } as const;

export function defineBmcDevices<
  D extends BmcDevice,
  R extends D & BmcDeviceRecord,
  F extends BmcDeviceFilter = BmcDeviceFilter,
>(spec: BmcDeviceSpec<D, R, F>): BmcDevices<D, R, F> {
  const { kind, table, expected } = spec;
  const own = (columns: readonly string[] = []) => columns.map((column) => `, ${column}`).join("");
  const loaded = `${STATE_COLUMNS}, t.rack_id, t.bmc_mac, t.bmc_address, t.bmc_port, t.bmc_scheme, t.bmc_trust, t.deleted_at,
  t.labels, e.id as expected_id${own(spec.columns)}`;
  const columns = `${loaded}, t.name, t.description, t.metadata_version, t.metadata_changed_at, t.created_at,
            w.failures, w.last_error, nullif(w.wake_at, 'infinity') as next_check_at${own(spec.recordColumns)}`;
  const withExpected = `${table} t left join ${expected.table} e on e.facts ->> '${expected.link}' = t.id and e.state = 'linked'`;
  const work = `left join work w on w.kind = '${kind}' and w.id = t.id`;
  const from = `${withExpected} ${work}`;

  const parseDevice = (row: BmcDeviceRow): D => spec.parse(row, parseShared(row));
  const parseReadable = (row: BmcDeviceRecordRow): R =>
    spec.parseRecord(row, {
      ...parseDevice(row),
      name: row.name,
      description: row.description,
      labels: row.labels,
      metadataVersion: row.metadata_version,
      metadataChangedAt: row.metadata_changed_at,
      createdAt: row.created_at,
      failures: row.failures ?? 0,
      lastError: row.last_error,
      nextCheckAt: row.next_check_at,
    });
  const parse = (row: BmcDeviceRecordRow): R => {
    try {
      return parseReadable(row);
    } catch (error) {
      const reason = `its row cannot be read: ${messageOf(error)}`;
      const rest = { ...row, facts: {}, ...spec.blank };
      return { ...parseReadable(rest), outcome: { type: "failing", reason, cause: { code: "quarantined" } } };
    }
  };
  const conditionsOf = (filter: F) => {
    const values: unknown[] = [];
    const where: string[] = [DELETED[filter.deleted ?? "include"]];
    const add: AddCondition = (condition, value) => {
      if (value !== undefined) where.push(condition(`$${values.push(value)}`));
    };
    add((at) => `t.id = any(${at})`, filter.ids);
    add((at) => `t.name = ${at}`, filter.name);
    add((at) => `t.rack_id = ${at}`, filter.rackId);
    add((at) => `t.state = ${at}`, filter.state);
    add((at) => `t.bmc_mac = ${at}`, filter.bmcMac);
    spec.conditions?.(filter, add);
    return { conditions: where.join(" and "), values };
  };

  return {
    columns,
    from,
    countFrom: `${table} t ${work}`,
    parse,
    async load(db, ids) {
      const text = `select ${loaded} from ${withExpected} where t.id = any($1)`;
      return parseRows(await db.query<BmcDeviceRow>({ name: `${table}.load`, text, values: [ids] }), parseDevice);
    },
    async list(db, filter) {
      const { conditions, values } = conditionsOf((filter ?? {}) as F);
      const text = `select ${columns} from ${from} where ${conditions} order by t.id`;
      // What most calls read; with other filters there are too many texts for each connection to know.
      const isByIds = Object.keys(filter ?? {}).join() === "ids";
      return (await db.query<BmcDeviceRecordRow>({ text, values, ...(isByIds && { hot: true }) })).map(parse);
    },
    async listIds(db, filter) {
      const { conditions, values } = conditionsOf(filter);
      const text = `select t.id from ${table} t where ${conditions} order by t.id`;
      return (await db.query<{ id: string }>(text, values)).map(({ id }) => id);
    },
    async findOfBmcs(db, macs) {
      if (macs.length === 0) return new Map();
      const text = `select id, bmc_mac from ${table} where bmc_mac = any($1)`;
      const rows = await db.query<{ id: string; bmc_mac: string }>(text, [macs]);
      return new Map(rows.map(({ id, bmc_mac }) => [bmc_mac, id]));
    },
  };
}

const sharedFacts = z.object(bmcDeviceFacts);

const parseShared = (row: BmcDeviceRow): BmcDevice => ({
  ...parseStateColumns(row),
  id: row.id,
  rackId: row.rack_id,
  bmc: {
    mac: row.bmc_mac,
    address: row.bmc_address,
    port: row.bmc_port,
    scheme: row.bmc_scheme,
    trust: row.bmc_trust,
  },
  facts: sharedFacts.parse(row.facts),
  deletedAt: row.deleted_at,
  expectedId: row.expected_id,
});
