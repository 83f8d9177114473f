import { namedList } from "../../../kernel/named-list.ts";
import type { Queryable } from "../../postgres/database.ts";
import { type MachineInUse, nameOf, storeOf, type ThingKey, type ThingStores } from "../things.ts";
import type { ClaimWish } from "./queue.ts";

const MOST_NAMED = 5;

/** The machines in use among these things, each once: the machines themselves, and the trays of racks. */
export async function findInUse(
  db: Queryable,
  stores: ThingStores,
  things: readonly ThingKey[],
): Promise<readonly MachineInUse[]> {
  const found = await findInUseOf(db, stores, things);
  const machines = things.flatMap((thing) => found.get(nameOf(thing)) ?? []);
  return [...new Map(machines.map((machine) => [machine.id, machine])).values()];
}

/** Of the wishes, those that must not be granted, each with the machines in use. The caller holds the locks of what must be unused. */
export async function findDisturbing(
  tx: Queryable,
  stores: ThingStores,
  wishes: readonly ClaimWish[],
): Promise<ReadonlyMap<ClaimWish, readonly MachineInUse[]>> {
  const found = await findInUseOf(
    tx,
    stores,
    wishes.flatMap(({ unused = [] }) => unused),
  );
  return new Map(
    wishes.flatMap((wish) => {
      const machines = (wish.unused ?? []).flatMap((thing) => found.get(nameOf(thing)) ?? []);
      return machines.length === 0 ? [] : [[wish, machines] as const];
    }),
  );
}

/** By the names of things: one query a kind. */
async function findInUseOf(db: Queryable, stores: ThingStores, things: readonly ThingKey[]) {
  const found = new Map<string, readonly MachineInUse[]>();
  for (const [kind, ofKind] of Map.groupBy(things, (thing) => thing.kind)) {
    const { inUse } = storeOf(stores, kind);
    if (!inUse) throw new Error(`nobody can tell whether a ${kind} is in use`);
    const ids = [...new Set(ofKind.map(({ id }) => id))];
    for (const [id, machines] of await inUse(db, ids)) found.set(nameOf({ kind, id }), machines);
  }
  return found;
}

/** For people: which machines are in use, and of which nobody knows. */
export const describeInUse = (machines: readonly MachineInUse[]): string =>
  `in use: ${namedList(
    machines.map(({ id, isUnknown }) => (isUnknown ? `${id} (not checked yet, or its cluster did not answer)` : id)),
    MOST_NAMED,
  )}`;

/** A claim that keeps others from using a thing. */
export interface Keeping {
  readonly holder: ThingKey;
  readonly thing: ThingKey;
  readonly reason: string;
}

/** Who keeps these things from coming into use; the caller holds their locks, or those of their racks where racks are named. */
export async function findKeeping(db: Queryable, things: readonly ThingKey[]): Promise<Keeping | undefined> {
  const [row] = await db.query<{ kind: string; id: string; thing_kind: string; thing_id: string; reason: string }>(
    `select coalesce(behalf_kind, holder_kind) as kind, coalesce(behalf_id, holder_id) as id, thing_kind, thing_id, reason from claims
      where unused && $1::text[] and (granted_at is not null or joined_at is not null) order by seq limit 1`,
    [things.map(nameOf)],
  );
  return row && { holder: row, thing: { kind: row.thing_kind, id: row.thing_id }, reason: row.reason };
}
