import type { JsonObject } from "../kernel/lifecycle.ts";
import type { Queryable } from "./database.ts";
import * as journal from "./journal.ts";
import type { ThingStore } from "./things.ts";
import * as work from "./work.ts";

const COLUMN = /^[a-z][a-z_]*$/;

/**
 * Inserts a thing in its initial state, with its first journal entry and wake-up; the caller holds its lock.
 *
 * `row` is named by columns; whatever it leaves out takes the column's default. Returns whether the row is new.
 */
export async function create(
  tx: Queryable,
  store: ThingStore,
  thing: {
    readonly id: string;
    readonly row: JsonObject;
    readonly actor: string;
    readonly ifMissing?: boolean;
    readonly reason?: string;
  },
): Promise<boolean> {
  const columns = Object.keys(thing.row);
  const odd = columns.find((column) => !COLUMN.test(column));
  if (odd !== undefined) throw new Error(`${odd} is no column name`);
  const names = ["id", "state", ...columns].join(", ");
  const values = ["$2", "$3", ...columns.map((column) => `r.${column}`)].join(", ");
  const inserted = await tx.query<{ id: string }>(
    `insert into ${store.table} (${names})
     select ${values} from jsonb_populate_record(null::${store.table}, $1::jsonb) as r
     ${thing.ifMissing ? "on conflict (id) do nothing" : ""} returning id`,
    [JSON.stringify(thing.row), thing.id, store.lifecycle.initial],
  );
  if (inserted.length === 0) return false;
  const { kind, initial } = store.lifecycle;
  await journal.append(tx, [
    {
      kind,
      id: thing.id,
      version: 1,
      type: "created",
      from: null,
      to: initial,
      owner: null,
      actor: thing.actor,
      reason: thing.reason ?? null,
      data: { state: {}, state_version: 1 },
    },
  ]);
  await work.wake(tx, [{ kind, id: thing.id }]);
  await journal.announce(tx);
  return true;
}
