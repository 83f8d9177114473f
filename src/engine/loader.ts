import { type Batcher, createBatcher, runInHalves } from "../kernel/batcher.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Thing } from "../kernel/lifecycle.ts";
import { type Loaded, storeOf, type ThingStores, type Unreadable } from "../store/lifecycle/things.ts";
import type { Database } from "../store/postgres/database.ts";
import { isDatabaseTrouble } from "../store/postgres/database-errors.ts";

const LOAD_BATCH = 500;

/** Neither: the thing is gone. */
interface Seen {
  readonly thing?: Thing;
  readonly unreadable?: Omit<Unreadable, "id">;
}
export type Loader = Batcher<string, Seen>;

/** Loads the things that many passes ask for at the same time with one query; one that breaks the query is found and set aside. */
export function createLoader(db: Database, stores: ThingStores, kind: string): Loader {
  const store = storeOf(stores, kind);
  const { states } = store.lifecycle;
  async function load(ids: readonly string[]) {
    const loaded: Loaded<Thing> = await store.load(db, [...new Set(ids)]);
    const things = new Map(loaded.things.map((thing) => [thing.id, thing]));
    const unreadables = new Map(loaded.unreadable.map((each) => [each.id, each]));
    return ids.map((id) => {
      const thing = things.get(id);
      const unreadable = unreadables.get(id);
      if (thing && states[thing.state.name] === undefined) return ofLaterVersion(thing);
      return { ...(thing && { thing }), ...(unreadable && { unreadable }) };
    });
  }
  return createBatcher({
    most: LOAD_BATCH,
    atOnce: 2,
    run: (ids: readonly string[]) =>
      runInHalves<string, Seen>(ids, {
        run: load,
        isOfTheItem: (error) => !isDatabaseTrouble(error),
        alone: async (_, error) => ({ unreadable: { error: messageOf(error) } }),
      }),
  });
}

/** A later version has given the kind another state. */
const ofLaterVersion = ({ state }: Thing): Seen => ({
  unreadable: { error: `this server does not know the state ${state.name}`, isForAnother: true },
});
