import type { ExpectedRack } from "../../lifecycles/expected-rack/expected-rack.ts";
import { expectedRackLifecycle } from "../../lifecycles/expected-rack/lifecycle.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import { parseRows, type ThingStore } from "../lifecycle/things.ts";
import type { Queryable } from "../postgres/database.ts";

interface ExpectedRackRow extends StateColumns {
  facts: unknown;
  name: string;
  description: string;
  labels: Record<string, string | null>;
  rack_profile_id: string;
}

const SELECT = `select ${STATE_COLUMNS}, t.name, t.description, t.labels, t.rack_profile_id from expected_racks t`;

const parseRow = (row: ExpectedRackRow): ExpectedRack => ({
  ...parseStateColumns(row),
  id: row.id,
  name: row.name,
  description: row.description,
  labels: row.labels,
  profileId: row.rack_profile_id,
  facts: {},
});

export const expectedRackStore: ThingStore<ExpectedRack> = {
  lifecycle: expectedRackLifecycle,
  table: "expected_racks",
  place: { table: "expected_racks", rack: (row) => `${row}.id` },
  requests: {},
  async load(db, ids) {
    return parseRows(await db.query<ExpectedRackRow>(`${SELECT} where t.id = any($1)`, [ids]), parseRow);
  },
};

/** Those that are named, or all, in the order of their ids. */
export async function listExpectedRacks(db: Queryable, ids?: readonly string[]): Promise<ExpectedRack[]> {
  const text = `${SELECT} where ($1::text[] is null or t.id = any($1)) order by t.id`;
  return (await db.query<ExpectedRackRow>(text, [ids ?? null])).map(parseRow);
}
