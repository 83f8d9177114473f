import type { Json, JsonObject, Lifecycle, ListFacts, Thing } from "../../../kernel/lifecycle.ts";

/** What an entry of the journal tells of facts that changed: how they are now, and how they were. Empty when nobody would want to be told. */
export function tellFacts(
  { quietFacts, listFacts }: Pick<Lifecycle<Thing>, "quietFacts" | "listFacts">,
  thing: Thing,
  patch: JsonObject,
): { readonly facts?: JsonObject; readonly was?: JsonObject } {
  const facts: Record<string, Json> = {};
  const was: Record<string, Json> = {};
  for (const [name, now] of Object.entries(patch)) {
    if (quietFacts.includes(name) || now === undefined) continue;
    const before = (thing.facts as JsonObject)[name];
    const list = listFacts[name];
    const told = list ? changedParts(before, now, list) : { before, now };
    facts[name] = told.now;
    if (told.before !== undefined && told.before !== null) was[name] = told.before;
  }
  if (Object.keys(facts).length === 0) return {};
  return { facts, ...(Object.keys(was).length > 0 && { was }) };
}

/** Of a list the parts that are new or other than before, and how these were. Parts are told apart by their names and counts. */
function changedParts(
  before: Json | undefined,
  now: Json,
  { untold, counted = "" }: ListFacts[string],
): { readonly before: Json; readonly now: Json } {
  const countOf = (part: JsonObject): Json => part[counted] ?? 1;
  const keyOf = (part: JsonObject): Json | undefined => {
    const count = countOf(part);
    return count === 1 ? part.name : `${part.name} ${count}`;
  };
  const tell = (part: JsonObject): JsonObject =>
    Object.fromEntries(
      Object.entries(part).filter(
        ([name, value]) => !untold.includes(name) && !saysNothing(value) && (name !== counted || value !== 1),
      ),
    );
  const known = new Map(partsOf(before).map((part) => [keyOf(part), part]));
  // Parts of the same key have the same count, whether or not it is said.
  const changed = partsOf(now).filter((part) => !isSame(known.get(keyOf(part)), part, counted));
  const were = changed.map((part) => known.get(keyOf(part))).filter((part) => part !== undefined);
  return { now: changed.map(tell), before: were.map(tell) };
}

/** What was loaded may have dates where the patch has their text, as the journal will; and what says nothing may be left out. */
function isSame(before: unknown, now: unknown, but = ""): boolean {
  if (before === now) return true;
  if (before instanceof Date) return before.toISOString() === now;
  if (typeof before !== "object" || typeof now !== "object" || before === null || now === null)
    return saysNothing(before) && saysNothing(now);
  const [known, fields] = [before as JsonObject, now as JsonObject];
  for (const name in fields) if (name !== but && !isSame(known[name], fields[name])) return false;
  for (const name in known) if (name !== but && !(name in fields) && !saysNothing(known[name])) return false;
  return true;
}

const saysNothing = (value: unknown): boolean =>
  value === undefined || value === null || value === false || value === "";

const partsOf = (list: unknown): JsonObject[] => (Array.isArray(list) ? list : []);
