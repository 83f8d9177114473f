/** A closed set of words that have more than one spelling each: `read` gives the one that is compared; undefined for other words. */
export interface SpelledWords {
  readonly words: readonly string[];
  read(text: string): string | undefined;
}

/** Text that has more than one spelling, such as a MAC address: `spell` gives the one that is compared. */
export interface SpelledText {
  spell(text: string): string;
  /** Any number of such texts. */
  readonly tags?: true;
}

/**
 * What the values of a field are, and so how it can be compared: any text, one of a closed set of words, a number, a time, labels
 * (text by key: `labels.<key>`), or tags (any number of texts).
 */
export type FieldType = "text" | "number" | "time" | "labels" | "tags" | readonly string[] | SpelledWords | SpelledText;

export type FilterFields = Readonly<Record<string, FieldType>>;

/** A field; `key` is there for fields with labels, and only for those. */
export interface FieldRef<F extends string = string> {
  readonly field: F;
  readonly key?: string;
}

export type Operator = "=" | "!=" | "~" | "!~" | "^=" | "<" | "<=" | ">" | ">=" | "in";

const COMPARED_BY = {
  text: ["=", "!=", "~", "!~", "^=", "in"],
  words: ["=", "!=", "in"],
  number: ["=", "!=", "<", "<=", ">", ">=", "in"],
  // With = and != only whether there is one: no two times are the same to the last digit that people see.
  time: ["<", "<=", ">", ">=", "=", "!="],
  labels: ["=", "!=", "~", "!~", "^=", "in"],
  tags: ["=", "!=", "~", "!~", "^=", "in"],
} as const satisfies Readonly<Record<string, readonly Operator[]>>;

export type TypeName = keyof typeof COMPARED_BY;

export function typeNameOf(type: FieldType): TypeName {
  if (typeof type === "string") return type;
  if ("spell" in type) return type.tags ? "tags" : "text";
  return "words";
}

export const operatorsOf = (type: FieldType): readonly Operator[] => COMPARED_BY[typeNameOf(type)];

/** The words of a closed set; undefined where any value will do. */
export function wordsOf(type: FieldType): readonly string[] | undefined {
  if (typeof type === "string" || "spell" in type) return undefined;
  return "words" in type ? type.words : type;
}

/** The fields as they are listed to people. */
export const nameFields = (fields: FilterFields): string =>
  Object.entries(fields)
    .map(([name, type]) => (type === "labels" ? `${name}.<key>` : name))
    .join(", ");
