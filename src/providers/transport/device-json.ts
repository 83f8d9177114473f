/**
 * Reading JSON that a device wrote. Nothing here throws and nothing is believed: a member that is missing, or is not what it
 * should be, is `undefined`, and the caller decides what that means.
 */
export type Resource = Readonly<Record<string, unknown>>;

export const isResource = (value: unknown): value is Resource =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value at a path of members; own members only, so that "constructor" is not found on every object. */
export function valueAt(value: unknown, ...path: readonly string[]): unknown {
  let here = value;
  for (const member of path) {
    if (!isResource(here) || !Object.hasOwn(here, member)) return undefined;
    here = here[member];
  }
  return here;
}

const LONGEST_TEXT = 1_024;

/** Text without surrounding blanks; empty text counts as missing, as devices write "" for what they do not know. */
export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  const found = valueAt(value, ...path);
  if (typeof found !== "string") return undefined;
  const text = found.trim().slice(0, LONGEST_TEXT);
  return text === "" ? undefined : text;
}

export function numberAt(value: unknown, ...path: readonly string[]): number | undefined {
  const found = valueAt(value, ...path);
  return typeof found === "number" && Number.isFinite(found) ? found : undefined;
}

export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = valueAt(value, ...path);
  return Array.isArray(found) ? found : [];
}
