import type { Json } from "../../kernel/lifecycle.ts";

/** What PostgreSQL's jsonb refuses in a string: the character NUL, and half of a surrogate pair. */
const REFUSED = /\\u(0000|d[89a-f])/i;

/** JSON that the database takes, whatever a device wrote into its answers: a name with a NUL in it must not stop its thing. */
export function toJsonText(value: Json | object): string {
  const text = JSON.stringify(value);
  return REFUSED.test(text) ? JSON.stringify(value, (_, part: unknown) => storable(part)) : text;
}

/** The same for text columns. */
export const storableText = (text: string): string => text.toWellFormed().replaceAll("\0", "\u{fffd}");

const storable = (part: unknown): unknown => {
  if (typeof part === "string") return storableText(part);
  if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
  return Object.fromEntries(Object.entries(part).map(([name, inner]) => [storableText(name), inner]));
};
