import type { Json, JsonObject } from "../../kernel/lifecycle.ts";
import type { Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { toJsonText } from "../postgres/json-text.ts";
import * as journal from "./journal.ts";
import { LIFECYCLE_COLUMNS } from "./state-columns.ts";
import { checkColumns, type ThingStore } from "./things.ts";

/** A change of a thing that is no transition: new metadata, a mark for deletion, new credentials. */
export interface Change {
  readonly id: string;
  readonly type: string;
  readonly actor: string;
  readonly address?: string | null;
  readonly reason?: string | null;
  readonly data?: JsonObject;
  /** Columns to set, by name; never those of the lifecycle. What is JSON in the database is given as it is, not as text. */
  readonly set: { readonly [column: string]: Json | Date };
  /**
   * Whether guards or handlers read what changes, as they do unless told: what they are at work on is then dropped and looked at
   * again. What they do not read must not cost them their work, however often others write it.
   */
  readonly touchesBasis?: boolean;
}

/** Writes the change with its journal entry; the caller holds the thing's lock. Returns whether the thing exists. */
export async function recordChange(tx: Transaction, store: ThingStore, change: Change): Promise<boolean> {
  return (await recordChanges(tx, store, [change])).has(change.id);
}

/**
 * Writes changes of many things, each of them once and all of the same columns, in two statements. Returns the ids of those that
 * exist.
 */
export async function recordChanges(
  tx: Transaction,
  store: ThingStore,
  changes: readonly Change[],
): Promise<ReadonlySet<string>> {
  const [first] = changes;
  if (!first) return new Set();
  const columns = Object.keys(first.set);
  checkColumns(columns);
  const odd = columns.find((column) => LIFECYCLE_COLUMNS.has(column));
  if (odd !== undefined) throw new Error(`${odd} cannot be set by a change`);
  const assignments = columns.map((column) => `, ${column} = r.${column}`).join("");
  const rows = await tx.query<{ id: string; version: number }>({
    hot: true,
    text: `update ${store.table} t
        set version = t.version + 1, basis = t.basis + case when i.touches_basis then 1 else 0 end ${assignments}
       from jsonb_to_recordset($1) as i(id text, touches_basis boolean, row jsonb)
            cross join lateral jsonb_populate_record(null::${store.table}, i.row) as r
      where t.id = i.id returning t.id, t.version`,
    values: [
      toJsonText(changes.map(({ id, touchesBasis = true, set }) => ({ id, touches_basis: touchesBasis, row: set }))),
    ],
  });
  if (rows.length === 0) return new Set();
  const { kind } = store.lifecycle;
  failPoint("changes:written", [{ kind }]);
  const versions = new Map(rows.map(({ id, version }) => [id, version]));
  await journal.append(
    tx,
    changes.flatMap((change) => {
      const version = versions.get(change.id);
      return version === undefined ? [] : [entryOf(kind, change, version)];
    }),
  );
  journal.announce(tx);
  return new Set(versions.keys());
}

const entryOf = (kind: string, change: Change, version: number): journal.JournalEntry => ({
  kind,
  id: change.id,
  version,
  type: change.type,
  from: null,
  to: null,
  owner: "caller",
  actor: change.actor,
  address: change.address ?? null,
  reason: change.reason ?? null,
  data: change.data ?? {},
});
