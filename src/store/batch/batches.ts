import type { Batch } from "../../lifecycles/batch/batch.ts";
import { batchLifecycle } from "../../lifecycles/batch/lifecycle.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import { parseRows, type ThingStore } from "../lifecycle/things.ts";
import { machinePlace } from "../machine/machine-place.ts";
import { isText, listOf } from "../postgres/stored-json.ts";

interface BatchRow extends StateColumns {
  machines: unknown;
  initiator: string;
}

const areIds = listOf(isText);

function parseBatch(row: BatchRow): Batch {
  const { machines, initiator } = row;
  if (!areIds(machines)) throw new TypeError("the machines of a batch must be a list of ids");
  return { ...parseStateColumns(row), id: row.id, facts: {}, machines, initiator };
}

export const batchStore: ThingStore<Batch> = {
  lifecycle: batchLifecycle,
  table: "batches",
  place: { table: "batches", all: { place: machinePlace, ids: (row) => `${row}.machines` } },
  requests: {},
  restsIdle: () => true,
  async load(db, ids) {
    const text = `select ${STATE_COLUMNS}, t.machines, t.initiator from batches t where t.id = any($1)`;
    return parseRows(await db.query<BatchRow>({ name: "batches.load", text, values: [ids] }), parseBatch);
  },
};
