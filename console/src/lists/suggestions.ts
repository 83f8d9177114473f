/** As much of a field as completion needs: see `ListFieldInfo` of the contract. */
export interface CompletedField {
  readonly name: string;
  readonly type: string;
  readonly operators: readonly string[];
  readonly values: readonly string[];
  readonly doc: string;
}

export interface Suggestion {
  /** Replaces the text between `from` and the caret. */
  readonly text: string;
  readonly doc: string;
}

export interface Completion {
  readonly from: number;
  readonly suggestions: readonly Suggestion[];
  /** The values of this field that begin so have to be asked for: they are no closed set. */
  readonly asks?: { readonly field: string; readonly prefix: string };
}

const MOST = 12;
const JOINERS: readonly Suggestion[] = [
  { text: "AND ", doc: "both hold" },
  { text: "OR ", doc: "one of them holds" },
];

/** A value as a filter takes it. */
export const filterValue = (value: string): string =>
  /^[\w.:/@+-]+$/.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;

type Expected = "field" | "operator" | "value" | "joiner";

/**
 * What can stand at the end of a text that begins a filter. It reads as much of the grammar as that takes, and refuses nothing: the
 * server does, and says why.
 */
export function completionOf(text: string, fields: readonly CompletedField[]): Completion {
  let at = 0;
  let expected: Expected = "field";
  let field: CompletedField | undefined;
  let isList = false;
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0] ?? "";
    at += found.length;
    return found;
  };
  for (;;) {
    take(/\s*/y);
    const from = at;
    switch (expected) {
      case "field": {
        if (take(/[()]/y) !== "") continue;
        const word = take(/(?:"(?:\\.|[^"\\])*"?|[\w.-])+/y);
        if (at === text.length) return { from, suggestions: fieldsLike(word, fields) };
        if (word === "") return nothingAt(from);
        if (word.toUpperCase() === "NOT") continue;
        field = fields.find(({ name, type }) => (type === "labels" ? word.startsWith(`${name}.`) : word === name));
        expected = "operator";
        break;
      }
      case "operator": {
        const word = take(/[=!~^<>]+|IN\b|[A-Za-z]+/iy);
        const isWhole = field?.operators.includes(word.toUpperCase()) ?? word !== "";
        if (at === text.length && !(isWhole && /[=~<>]$/.test(word)))
          return { from, suggestions: operatorsLike(word, field) };
        if (!isWhole) return nothingAt(from);
        isList = word.toUpperCase() === "IN";
        if (isList) {
          take(/\s*/y);
          take(/\(/y);
        }
        expected = "value";
        break;
      }
      case "value": {
        const word = take(/"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|[^\s(),"']*/y);
        if (at === text.length) return valuesLike(word, from, field);
        if (word === "") return nothingAt(from);
        if (isList && take(/\s*,/y) !== "") continue;
        if (isList) take(/\s*\)/y);
        isList = false;
        expected = "joiner";
        break;
      }
      case "joiner": {
        if (take(/\)/y) !== "") continue;
        const word = take(/[A-Za-z]*/y);
        if (at === text.length) return { from, suggestions: beginningWith(word, JOINERS) };
        if (!/^(AND|OR)$/i.test(word)) return nothingAt(from);
        expected = "field";
      }
    }
  }
}

const nothingAt = (from: number): Completion => ({ from, suggestions: [] });

function beginningWith(prefix: string, all: readonly Suggestion[]): readonly Suggestion[] {
  const wanted = prefix.toLowerCase();
  return all.filter(({ text }) => text.toLowerCase().startsWith(wanted) && text !== prefix).slice(0, MOST);
}

/** Those that begin so first, then those that have it anywhere. */
function fieldsLike(word: string, fields: readonly CompletedField[]): readonly Suggestion[] {
  const all = fields.map(({ name, type, doc }) => ({ text: type === "labels" ? `${name}.` : name, doc }));
  const first = beginningWith(word, all);
  const others = all.filter((each) => !first.includes(each) && each.text.includes(word) && each.text !== word);
  const typed = all.some(({ text }) => text === word) ? [] : others;
  return [...first, ...typed].slice(0, MOST);
}

function operatorsLike(word: string, field: CompletedField | undefined): readonly Suggestion[] {
  const all = (field?.operators ?? []).map((operator) => ({
    text: operator === "IN" ? " IN (" : operator,
    doc: OPERATOR_WORDS[operator] ?? "",
  }));
  return all.filter(({ text }) => text.trim().toLowerCase().startsWith(word.toLowerCase()));
}

const OPERATOR_WORDS: Readonly<Record<string, string>> = {
  "=": "is",
  "!=": "is not",
  "~": "contains",
  "!~": "does not contain",
  "^=": "begins with",
  "<": "less, or before",
  "<=": "at most",
  ">": "more, or after",
  ">=": "at least",
  IN: "is one of",
};

const TIMES: readonly Suggestion[] = [
  { text: "-30m", doc: "half an hour ago" },
  { text: "-2h", doc: "two hours ago" },
  { text: "-1d", doc: "a day ago" },
  { text: "-7d", doc: "a week ago" },
];

function valuesLike(word: string, from: number, field: CompletedField | undefined): Completion {
  if (field === undefined || field.type === "number") return nothingAt(from);
  if (field.type === "time") return { from, suggestions: beginningWith(word, TIMES) };
  const prefix = word.replace(/^["']/, "");
  if (field.values.length === 0)
    return { from, suggestions: [], ...(field.type !== "labels" && { asks: { field: field.name, prefix } }) };
  const all = field.values.map((value) => ({ text: filterValue(value), doc: "" }));
  return { from, suggestions: beginningWith(word, all) };
}
