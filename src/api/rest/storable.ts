/** Deeper than anything that the contract knows, and shallow enough for everything that walks it. */
const DEEPEST = 32;

export interface Unstorable {
  readonly at: readonly (string | number)[];
  readonly why: string;
}

/**
 * The first thing in a request that could not be kept as it was sent: the character NUL and halves of surrogate pairs, which the
 * database refuses, and JSON that is nested too deeply. Without recursion, since that is what deep JSON is sent to break.
 */
export function findUnstorable(value: unknown): Unstorable | undefined {
  const left: { readonly value: unknown; readonly at: readonly (string | number)[] }[] = [{ value, at: [] }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value: part, at } = next;
    if (typeof part === "string" && !isStorable(part)) return { at, why: UNSTORABLE_TEXT };
    if (typeof part !== "object" || part === null) continue;
    if (at.length >= DEEPEST) return { at: at.slice(0, 3), why: `nested more than ${DEEPEST} levels deep` };
    if (Array.isArray(part)) {
      for (const [index, inner] of part.entries()) left.push({ value: inner, at: [...at, index] });
      continue;
    }
    for (const [name, inner] of Object.entries(part)) {
      if (!isStorable(name)) return { at, why: `a name in it: ${UNSTORABLE_TEXT}` };
      left.push({ value: inner, at: [...at, name] });
    }
  }
  return undefined;
}

const UNSTORABLE_TEXT = "text must not hold the character NUL or half of a surrogate pair";
const isStorable = (text: string): boolean => !text.includes("\0") && text.isWellFormed();
