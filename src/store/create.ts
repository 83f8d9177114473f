import type { JsonObject } from "../kernel/lifecycle.ts";
import type { Queryable } from "./database.ts";
import * as journal from "./journal.ts";
import { toJsonText } from "./json-text.ts";
import type { ThingStore } from "./things.ts";
import * as work from "./work.ts";

const COLUMN = /^[a-z][a-z_]*$/;
const VERSION = `1 + coalesce((select j.version from journal j where j.kind = $4 and j.id = $2
                                order by j.epoch desc, j.xid desc, j.seq desc limit 1), 0)`;

/**
 * Inserts a thing in its initial state, with its first journal entry and wake-up; the caller holds its lock. A thing that was
 * removed and comes again goes on counting versions where it left, so that watchers never see them go back.
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
    readonly address?: string | null;
    readonly ifMissing?: boolean;
    readonly reason?: string;
  },
): Promise<boolean> {
  const columns = Object.keys(thing.row);
  const odd = columns.find((column) => !COLUMN.test(column));
  if (odd !== undefined) throw new Error(`${odd} is no column name`);
  const { kind, initial } = store.lifecycle;
  const names = ["id", "state", "version", ...columns].join(", ");
  const values = ["$2", "$3", VERSION, ...columns.map((column) => `r.${column}`)].join(", ");
  const [inserted] = await tx.query<{ version: number }>(
    `insert into ${store.table} (${names})
     select ${values} from jsonb_populate_record(null::${store.table}, $1::jsonb) as r
     ${thing.ifMissing ? "on conflict (id) do nothing" : ""} returning version`,
    [toJsonText(thing.row), thing.id, initial, kind],
  );
  if (!inserted) return false;
  await journal.append(tx, [
    {
      kind,
      id: thing.id,
      version: inserted.version,
      type: "created",
      from: null,
      to: initial,
      owner: null,
      actor: thing.actor,
      address: thing.address ?? null,
      reason: thing.reason ?? null,
      data: { state: {}, state_version: 1 },
    },
  ]);
  await work.wake(tx, [{ kind, id: thing.id }]);
  await journal.announce(tx);
  return true;
}
