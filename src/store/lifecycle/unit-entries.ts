import type * as journal from "./journal.ts";
import { nameOf, storeOf, type ThingStores } from "./things.ts";
import { tellFacts } from "./told-facts.ts";
import { keyOf, outcomeAfter, type Unit } from "./unit.ts";

/** What the journal will tell, once there is a version to it. */
export type Untold = Omit<journal.JournalEntry, "version">;

/** The last entry has the version that the thing now has, and those before it the ones before. */
export function withVersions(
  unit: Unit,
  untold: readonly Untold[],
  versions: ReadonlyMap<string, number>,
): journal.JournalEntry[] {
  const version = versions.get(nameOf(keyOf(unit)));
  if (version === undefined) throw new Error(`${unit.kind} ${unit.thing.id} was not written, though it is locked`);
  return untold.map((entry, index) => ({ ...entry, version: version - (untold.length - 1 - index) }));
}

/** The journal's rows of a unit; none when only quiet facts changed, since nobody would want to be told. */
export function tellUnit(stores: ThingStores, unit: Unit): Untold[] {
  const { observed } = unit;
  const own = tellOwn(stores, unit);
  if (!observed) return own;
  const { type, data } = observed;
  return [
    ...own,
    { ...keyOf(unit), actor: unit.actor, type, from: null, to: null, owner: "caller", reason: null, data },
  ];
}

function tellOwn(stores: ThingStores, unit: Unit): Untold[] {
  const { thing, move, kind } = unit;
  const told = tellFacts(storeOf(stores, kind).lifecycle, thing, { ...unit.facts, ...move?.facts });
  const base = { kind, id: thing.id, actor: unit.actor, address: unit.address ?? null };
  if (move) {
    const ended =
      move.ends.length > 0 ? { ended: move.ends.map((end) => ({ ...end, message: end.message ?? null })) } : {};
    const state = move.gone
      ? {}
      : { state: move.carried, state_version: thing.stateVersion + (move.to === move.from ? 0 : 1) };
    return [
      {
        ...base,
        type: move.gone ? "deleted" : "transition",
        from: move.from,
        to: move.gone ? null : move.to,
        owner: move.owner,
        reason: move.message ?? move.trigger,
        data: { trigger: move.trigger, ...state, ...ended, ...told },
      },
    ];
  }
  const outcome = outcomeAfter(unit);
  const outcomeChanged = outcome?.reason !== thing.outcome?.reason || outcome?.type !== thing.outcome?.type;
  if (!outcomeChanged && Object.keys(told).length === 0) return [];
  const type = outcomeChanged ? (outcome?.type ?? "recovered") : "facts_changed";
  return [
    {
      ...base,
      type,
      from: null,
      to: null,
      owner: null,
      reason: outcomeChanged ? (outcome?.reason ?? null) : null,
      data: told,
    },
  ];
}
