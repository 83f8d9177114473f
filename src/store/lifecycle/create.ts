import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { toJsonText } from "../postgres/json-text.ts";
import * as journal from "./journal.ts";
import { checkColumns, type ThingStore } from "./things.ts";
import * as work from "./work.ts";

export interface NewThing {
  readonly id: string;
  /** Named by columns; whatever it leaves out takes the column's default. */
  readonly row: JsonObject;
}

interface Creation {
  readonly actor: string;
  readonly address?: string | null;
  /** Otherwise one that exists already is an error. */
  readonly ifMissing?: boolean;
  readonly reason?: string;
  /** One of the states in which its lifecycle lets a thing begin. Absent: its initial one. */
  readonly state?: string;
}

/** Inserts one thing, as `createAll` does. Returns whether the row is new. */
export async function create(tx: Transaction, store: ThingStore, thing: NewThing & Creation): Promise<boolean> {
  return (await createAll(tx, store, [thing], thing)).has(thing.id);
}

/**
 * Inserts things, all with the same columns, in the same initial state, with their first journal entries and wake-ups; the caller
 * holds their locks. A thing that was removed and comes again goes on counting where it left, so that watchers never see versions
 * go back, and no outcome for the earlier thing fits the new one. Returns the ids of those that are new.
 */
export async function createAll(
  tx: Transaction,
  store: ThingStore,
  things: readonly NewThing[],
  { actor, address, ifMissing, reason, state }: Creation,
): Promise<ReadonlySet<string>> {
  const [first] = things;
  if (!first) return new Set();
  const columns = Object.keys(first.row);
  checkColumns(columns);
  const { kind } = store.lifecycle;
  const initial = initialState(store, state);
  const inserted = await tx.query<{ id: string; version: number }>({
    hot: true,
    text: `insert into ${store.table} (${["id", "state", "version", "basis", ...columns].join(", ")})
     select ${["i.id", "$2", "c.version", "c.version", ...columns.map((column) => `r.${column}`)].join(", ")}
       from jsonb_to_recordset($1) as i(id text, row jsonb)
            cross join lateral jsonb_populate_record(null::${store.table}, i.row) as r
            cross join lateral (select 1 + coalesce((select j.version from journal j where j.kind = $3 and j.id = i.id
                                  order by j.epoch desc, j.xid desc, j.seq desc limit 1), 0) as version) as c
     ${ifMissing ? "on conflict (id) do nothing" : ""} returning id, version`,
    values: [toJsonText(things.map(({ id, row }) => ({ id, row }))), initial, kind],
  });
  if (inserted.length === 0) return new Set();
  failPoint("create:inserted", [{ kind }]);
  const told = { kind, type: "created", from: null, to: initial, owner: null, actor } as const;
  await journal.append(
    tx,
    inserted.map(({ id, version }) => ({
      ...told,
      id,
      version,
      address: address ?? null,
      reason: reason ?? null,
      data: { state: {}, state_version: 1 },
    })),
  );
  await work.wake(
    tx,
    inserted.map(({ id }) => ({ kind, id })),
  );
  journal.announce(tx);
  return new Set(inserted.map(({ id }) => id));
}

function initialState({ lifecycle }: ThingStore, wanted = lifecycle.initial): string {
  if (wanted === lifecycle.initial || lifecycle.alsoInitial?.includes(wanted)) return wanted;
  throw new Error(`no ${lifecycle.kind} begins in ${wanted}`);
}
