import type { ThingKey } from "../../services/call/reach.ts";

/** Which things a request names. `list`: none; what is answered is cut to what the caller may see. */
export type ThingRule = "list" | readonly NamedThings[];

interface NamedThings {
  /** Absent: the field `kind` of the request says it. */
  readonly kind: string | undefined;
  /** Names of fields, from the outermost one. */
  readonly ids: readonly string[];
}

export function parseThingRule(text: string): ThingRule {
  if (text === "list") return text;
  return text.split(", ").map((part) => {
    const [kind = "", ids = ""] = part.split(" ");
    if (!/^(\{kind\}|[a-z_]+)$/.test(kind) || !/^[a-z_.]+$/.test(ids)) throw new Error(`${text} names no things`);
    return { kind: kind === "{kind}" ? undefined : kind, ids: ids.split(".") };
  });
}

/** The things that a request names: a message, or what a route was sent. */
export function thingsIn(request: unknown, rule: readonly NamedThings[]): ThingKey[] {
  return rule.flatMap(({ kind, ids }) => {
    const [said] = kind === undefined ? wordsAt(request, ["kind"]) : [kind];
    return said === undefined ? [] : wordsAt(request, ids).map((id) => ({ kind: said, id }));
  });
}

/** Messages have their fields in camel case. */
const localName = (field: string): string => field.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** Every text at the end of the way, through all elements of lists, and through the choice that a message holds in place of a field. */
function wordsAt(value: unknown, way: readonly string[]): string[] {
  if (Array.isArray(value)) return value.flatMap((each) => wordsAt(each, way));
  const [field, ...rest] = way;
  if (field === undefined) return typeof value === "string" && value !== "" ? [value] : [];
  if (typeof value !== "object" || value === null) return [];
  const fields = value as Readonly<Record<string, unknown>>;
  const own = fields[field] ?? fields[localName(field)];
  return own === undefined ? choicesOf(fields, field).flatMap((chosen) => wordsAt(chosen, rest)) : wordsAt(own, rest);
}

const choicesOf = (fields: Readonly<Record<string, unknown>>, field: string): unknown[] =>
  Object.values(fields).flatMap((each) => {
    const isChoice = typeof each === "object" && each !== null && "case" in each && "value" in each;
    return isChoice && each.case === localName(field) ? [each.value] : [];
  });
