import { GONE, type RelatedState, type Thing } from "../../kernel/lifecycle.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { changesOf, lastMoveOf, type Unit } from "./commit/unit.ts";
import type { ThingKey, ThingStore, ThingStores } from "./things.ts";

/** That a thing is part of another one, works on it or waits for it: who the other is stands on the thing's own record. */
export interface Relation<T extends Thing = Thing> {
  /** Null: there is none at present. */
  readonly of: (thing: T) => ThingKey | null;
  /** Rows of the thing give the other one a pass, but for the rows of these triggers. Absent: none does. */
  readonly wakes?: { readonly butFor: readonly string[] };
  /** The other one's state is loaded with the thing, as `related[name]`. */
  readonly loadsState?: true;
  /** The other one's rows give the thing a pass. */
  readonly awaits?: Awaits;
}

interface Awaits {
  readonly kind: string;
  /** Which of the other one's states are waited for; `GONE`: that it goes. */
  readonly states: readonly string[];
  /** The ids of the things that wait for these. */
  readonly waiting: (db: Queryable, others: readonly Thing[]) => Promise<readonly string[]>;
}

export type Relations<T extends Thing = Thing> = { readonly [name: string]: Relation<T> };

const relationsOf = (stores: ThingStores, kind: string): readonly Relation[] =>
  Object.values(stores.get(kind)?.related ?? {});

/** Whom a unit's rows give a pass since its thing is part of them, or works for them. */
export function wokenAbove(stores: ThingStores, unit: Unit): ThingKey[] {
  const triggers = changesOf(unit).flatMap(({ move }) => move?.trigger ?? []);
  if (triggers.length === 0) return [];
  return relationsOf(stores, unit.kind).flatMap(({ of, wakes }) => {
    if (!wakes || triggers.every((trigger) => wakes.butFor.includes(trigger))) return [];
    return of(unit.thing) ?? [];
  });
}

/** Who waits for what the units have come to. One query for each relation that waits for just that; mostly there is none. */
export async function findAwaiting(tx: Transaction, stores: ThingStores, units: readonly Unit[]): Promise<ThingKey[]> {
  const entered = units.flatMap((unit) => {
    const move = lastMoveOf(unit);
    if (!move || (!move.gone && move.to === unit.thing.state.name)) return [];
    return [{ kind: unit.kind, thing: unit.thing, state: move.gone ? GONE : move.to }];
  });
  if (entered.length === 0) return [];
  const woken: ThingKey[] = [];
  for (const kind of stores.keys()) {
    for (const { awaits } of relationsOf(stores, kind)) {
      const others = entered.filter((one) => awaits?.kind === one.kind && awaits.states.includes(one.state));
      if (!awaits || others.length === 0) continue;
      const ids = await awaits.waiting(
        tx,
        others.map(({ thing }) => thing),
      );
      woken.push(...ids.map((id) => ({ kind, id })));
    }
  }
  return woken;
}

/** The store, loading with each thing the states of those that its relations name: one more query a kind of them, where there are any. */
export function withRelatedStates(store: ThingStore, stores: ThingStores): ThingStore {
  const loaded = Object.entries(store.related ?? {}).filter(([, { loadsState }]) => loadsState);
  if (loaded.length === 0) return store;
  return {
    ...store,
    async load(db, ids) {
      const { things, unreadable } = await store.load(db, ids);
      const keys = things.flatMap((thing) => loaded.flatMap(([, relation]) => relation.of(thing) ?? []));
      const states = await readStates(db, stores, keys);
      const relatedTo = (thing: Thing) =>
        Object.fromEntries(
          loaded.map(([name, relation]) => {
            const key = relation.of(thing);
            return [name, (key && states.get(`${key.kind} ${key.id}`)) ?? null];
          }),
        );
      return { things: things.map((thing) => ({ ...thing, related: relatedTo(thing) })), unreadable };
    },
  };
}

async function readStates(
  db: Queryable,
  stores: ThingStores,
  keys: readonly ThingKey[],
): Promise<ReadonlyMap<string, RelatedState>> {
  const states = new Map<string, RelatedState>();
  for (const [kind, ofKind] of Map.groupBy(keys, (key) => key.kind)) {
    const table = stores.get(kind)?.table;
    if (table === undefined) continue;
    const rows = await db.query<{ id: string; state: string }>({
      hot: true,
      text: `select id, state from ${table} where id = any($1)`,
      values: [[...new Set(ofKind.map(({ id }) => id))]],
    });
    for (const { id, state } of rows) states.set(`${kind} ${id}`, { kind, id, state });
  }
  return states;
}
