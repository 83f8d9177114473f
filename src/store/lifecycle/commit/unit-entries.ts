import { changesState, type Move } from "../../../kernel/decide.ts";
import { isSameOutcome, type JsonObject, type Thing } from "../../../kernel/lifecycle.ts";
import type * as journal from "../journal.ts";
import { nameOf, storeOf, type ThingStores } from "../things.ts";
import { tellFacts } from "./told-facts.ts";
import { type Change, changesOf, keyOf, outcomeAfter, type Unit } from "./unit.ts";

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
export const tellUnit = (stores: ThingStores, unit: Unit): Untold[] =>
  changesOf(unit).flatMap((change) => {
    const { observed } = change;
    const own = change.move ? [tellMove(stores, unit, change, change.move)] : tellOther(stores, unit, change);
    if (!observed) return own;
    const { type, data } = observed;
    const seen = { ...keyOf(unit), actor: unit.actor, type, data };
    return [...own, { ...seen, from: null, to: null, owner: "caller", reason: null }];
  });

function tellMove(stores: ThingStores, unit: Unit, { thing, facts }: Change, move: Move): Untold {
  const ended =
    move.ends.length > 0 ? { ended: move.ends.map((end) => ({ ...end, message: end.message ?? null })) } : {};
  const stateVersion = thing.stateVersion + (changesState(thing, move) ? 1 : 0);
  const state = move.gone ? {} : { state: move.carried, state_version: stateVersion };
  return {
    ...baseOf(unit),
    type: move.gone ? "deleted" : "transition",
    from: move.from,
    to: move.gone ? null : move.to,
    owner: move.owner,
    reason: move.message ?? move.trigger,
    data: {
      trigger: move.trigger,
      // Readers take a reason that is the trigger's name for one that nobody gave.
      ...(move.message === move.trigger && { commented: true }),
      ...(move.cause && { cause: move.cause }),
      ...state,
      ...ended,
      ...toldIn(stores, unit, thing, { ...facts, ...move.facts }),
    },
  };
}

const baseOf = (unit: Unit) => ({ ...keyOf(unit), actor: unit.actor, address: unit.address ?? null });

const toldIn = (stores: ThingStores, { kind }: Unit, thing: Thing, facts: JsonObject) =>
  tellFacts(storeOf(stores, kind).lifecycle, thing, facts);

/** The event of a fact that was known, and is another one now; undefined where none of that kind is. */
function replacedBy(stores: ThingStores, { kind }: Unit, thing: Thing, facts: JsonObject): string | undefined {
  const { replacedFacts = {} } = storeOf(stores, kind);
  const known = thing.facts as JsonObject;
  const isReplaced = (fact: string) => known[fact] != null && facts[fact] != null && facts[fact] !== known[fact];
  return Object.entries(replacedFacts).find(([fact]) => isReplaced(fact))?.[1];
}

function tellOther(stores: ThingStores, unit: Unit, { thing, facts = {} }: Change): Untold[] {
  const told = toldIn(stores, unit, thing, facts);
  const outcome = outcomeAfter(unit);
  const outcomeChanged = !isSameOutcome(outcome, thing.outcome);
  if (!outcomeChanged && Object.keys(told).length === 0) return [];
  const type = outcomeChanged
    ? (outcome?.type ?? "recovered")
    : (replacedBy(stores, unit, thing, facts) ?? "facts_changed");
  return [
    {
      ...baseOf(unit),
      type,
      from: null,
      to: null,
      owner: null,
      reason: outcomeChanged ? (outcome?.reason ?? null) : null,
      data: outcomeChanged && outcome?.cause ? { cause: outcome.cause, ...told } : told,
    },
  ];
}
