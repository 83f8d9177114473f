import type { JsonObject } from "../kernel/lifecycle.ts";
import type { Queryable } from "./database.ts";
import * as journal from "./journal.ts";
import type { ThingStore } from "./things.ts";

/** A change of a thing that is no transition: new metadata, a mark for deletion, new credentials. */
export interface Change {
  readonly id: string;
  readonly type: string;
  readonly actor: string;
  readonly address?: string | null;
  readonly reason?: string | null;
  readonly data?: JsonObject;
  /** Columns to set, by name; never those of the lifecycle. */
  readonly set: { readonly [column: string]: unknown };
}

const COLUMN = /^[a-z][a-z_]*$/;
const LIFECYCLE_COLUMNS = new Set([
  "state",
  "state_data",
  "state_version",
  "state_since",
  "outcome",
  "version",
  "facts",
]);

/** Writes the change with its journal entry; the caller holds the thing's lock. Returns whether the thing exists. */
export async function recordChange(tx: Queryable, store: ThingStore, change: Change): Promise<boolean> {
  const columns = Object.keys(change.set);
  const odd = columns.find((column) => !COLUMN.test(column) || LIFECYCLE_COLUMNS.has(column));
  if (odd !== undefined) throw new Error(`${odd} cannot be set by a change`);
  const assignments = ["version = version + 1", ...columns.map((column, index) => `${column} = $${index + 2}`)];
  const [row] = await tx.query<{ version: number }>(
    `update ${store.table} set ${assignments.join(", ")} where id = $1 returning version`,
    [change.id, ...Object.values(change.set)],
  );
  if (!row) return false;
  await journal.append(tx, [
    {
      kind: store.lifecycle.kind,
      id: change.id,
      version: row.version,
      type: change.type,
      from: null,
      to: null,
      owner: "caller",
      actor: change.actor,
      address: change.address ?? null,
      reason: change.reason ?? null,
      data: change.data ?? {},
    },
  ]);
  await journal.announce(tx);
  return true;
}
