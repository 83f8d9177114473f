import { z } from "zod";
import { messageOf } from "../../kernel/errors.ts";
import { GONE } from "../../kernel/lifecycle.ts";
import {
  EXPLORE_RESULTS,
  type ExistingShelf,
  type ExpectedPowerShelf,
  type ExploreResult,
} from "../../lifecycles/expected-power-shelf/expected-power-shelf.ts";
import { expectedPowerShelfLifecycle } from "../../lifecycles/expected-power-shelf/lifecycle.ts";
import { powerShelfLifecycle } from "../../lifecycles/power-shelf/lifecycle.ts";
import type { PowerShelf } from "../../lifecycles/power-shelf/power-shelf.ts";
import { sharesBmcCredentials } from "../device/bmc-credentials.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import { parseRows, type ThingStore } from "../lifecycle/things.ts";
import type { Queryable } from "../postgres/database.ts";

export interface ExpectedPowerShelfRecord extends ExpectedPowerShelf {
  readonly bmcUsername: string;
  readonly retainCredentials: boolean;
  readonly createdAt: Date;
  /** How finding it goes, as it is shown. */
  readonly explored: ExploreResult;
  readonly nextExploreAt: Date | null;
  /** The error of the last failed pass; the row itself may not have it. */
  readonly lastError: string | null;
}

const factsSchema = z.object({
  explored: z.enum(EXPLORE_RESULTS).nullable().default(null),
  exploredAt: z.string().nullable().default(null),
  powerShelfId: z.string().nullable().default(null),
  certificateFingerprint: z.string().nullable().default(null),
});

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
  shelf_serial_number: string;
  bmc_retain_credentials: boolean;
  created_at: Date;
  existing_id: string | null;
  existing_facts: { readonly serial?: string | null; readonly certificateFingerprint?: string | null } | null;
  existing_scheme: ExistingShelf["scheme"];
  existing_trust: ExistingShelf["trust"];
  existing_deleted_at: Date | null;
  explored: ExploreResult;
  next_explore_at: Date | null;
  last_error: string | null;
}

/** A pass that could not be finished says so by the work's own error alone. */
export const EXPLORED = `case when t.state = 'exploring' and w.last_error is not null then 'failed' else coalesce(t.facts ->> 'explored', 'pending') end`;
/** What a record is read from, for lists. */
export const RECORD_COLUMNS = `${STATE_COLUMNS}, t.name, t.description, t.labels, t.rack_id, t.bmc_mac, t.bmc_username, t.bmc_address, t.bmc_port,
         t.shelf_serial_number, t.bmc_retain_credentials, t.created_at,
         s.id as existing_id, jsonb_build_object('serial', s.facts -> 'serial', 'certificateFingerprint', s.facts -> 'certificateFingerprint') as existing_facts, s.bmc_scheme as existing_scheme, s.bmc_trust as existing_trust,
         s.deleted_at as existing_deleted_at, nullif(w.wake_at, 'infinity') as next_explore_at, w.last_error, ${EXPLORED} as explored`;
export const RECORD_FROM = `expected_power_shelves t
    left join power_shelves s on s.bmc_mac = t.bmc_mac
    left join work w on w.kind = 'expected_power_shelf' and w.id = t.id`;
const SELECT = `select ${RECORD_COLUMNS} from ${RECORD_FROM}`;

function parseRecord(row: ExpectedRow): ExpectedPowerShelfRecord {
  return {
    ...parseStateColumns(row),
    id: row.id,
    bmc: { mac: row.bmc_mac, address: row.bmc_address, port: row.bmc_port },
    serial: row.shelf_serial_number,
    name: row.name,
    description: row.description,
    labels: row.labels,
    rackId: row.rack_id,
    facts: factsSchema.parse(row.facts),
    existingShelf: parseExistingShelf(row),
    bmcUsername: row.bmc_username,
    retainCredentials: row.bmc_retain_credentials,
    createdAt: row.created_at,
    explored: row.explored,
    nextExploreAt: row.next_explore_at,
    lastError: row.last_error,
  };
}

function parseExistingShelf(row: ExpectedRow): ExistingShelf | null {
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

export const expectedPowerShelfStore: ThingStore<ExpectedPowerShelf> = {
  lifecycle: expectedPowerShelfLifecycle,
  table: "expected_power_shelves",
  requests: {},
  related: {
    shelf: {
      of: ({ existingShelf }) => existingShelf && { kind: powerShelfLifecycle.kind, id: existingShelf.id },
      // While a shelf that is to go has the BMC, its row waits for that.
      awaits: {
        kind: powerShelfLifecycle.kind,
        states: [GONE],
        waiting: async (db, shelves) => {
          const macs = (shelves as readonly PowerShelf[]).map(({ bmc }) => bmc.mac);
          const text = "select id from expected_power_shelves where bmc_mac = any($1) and state = 'exploring'";
          return (await db.query<{ id: string }>(text, [macs])).map(({ id }) => id);
        },
      },
    },
  },
  ...sharesBmcCredentials,
  async load(db, ids) {
    return parseRows(await db.query<ExpectedRow>(`${SELECT} where t.id = any($1)`, [ids]), parseRecord);
  },
};

export interface ExpectedPowerShelfFilter {
  readonly ids?: readonly string[];
  readonly bmcMac?: string;
  readonly rackId?: string;
}

/** In the order of their MAC addresses. */
export async function listExpectedPowerShelves(
  db: Queryable,
  filter: ExpectedPowerShelfFilter = {},
): Promise<ExpectedPowerShelfRecord[]> {
  const values: unknown[] = [];
  const where: string[] = ["true"];
  const add = (condition: (at: string) => string, value: unknown) => {
    if (value !== undefined) where.push(condition(`$${values.push(value)}`));
  };
  add((at) => `t.id = any(${at})`, filter.ids);
  add((at) => `t.bmc_mac = ${at}`, filter.bmcMac);
  add((at) => `t.rack_id = ${at}`, filter.rackId);
  const rows = await db.query<ExpectedRow>(`${SELECT} where ${where.join(" and ")} order by t.bmc_mac`, values);
  return rows.map(parseAsFarAsPossible);
}

/** One row that does not parse must not hide the others from a list: what was found out about it is left away. */
export function parseAsFarAsPossible(row: ExpectedRow): ExpectedPowerShelfRecord {
  try {
    return parseRecord(row);
  } catch (error) {
    const lastError = `its row cannot be read: ${messageOf(error)}`;
    return { ...parseRecord({ ...row, facts: {} }), explored: "failed", lastError };
  }
}
