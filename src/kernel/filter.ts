import { AppError } from "./errors.ts";

/**
 * What a field can be compared with: any text, one of a closed set of words, or labels, which have a value by key
 * (`labels.<key>`).
 */
export type FilterField = "text" | "labels" | readonly string[] | SpelledWords;
/** A closed set of words that have more than one spelling each: `read` gives the one that is compared, for those that there are. */
export interface SpelledWords {
  readonly words: readonly string[];
  read(text: string): string | undefined;
}
export type FilterFields = Readonly<Record<string, FilterField>>;

/** One comparison. `key` is there for fields with labels, and only for those. */
export type FilterTerm<F extends string = string> = { readonly field: F; readonly key?: string } & (
  | { readonly operator: "=" | "!="; readonly value: string }
  | { readonly operator: "in"; readonly values: readonly string[] }
);

/** Terms that must all hold; none admits everything. */
export type Filter<F extends string = string> = readonly FilterTerm<F>[];

export const FILTER_LIMITS = { characters: 8_192, terms: 50, values: 500 } as const;

const KEYWORDS = new Set(["AND", "IN"]);
/** A value or a field that needs no quotes: no blanks, and none of the marks that mean something here. */
const BARE = /[^\s=!(),"'\\]+/y;
const BLANKS = /\s*/y;

/**
 * Reads `field=value`, `field!=value` and `field IN (value, value)`, joined with AND. Values with blanks or marks stand in
 * single or double quotes, where `\` takes the next quote or `\` as it is; so does the key of a label (`labels."a b"`).
 * AND and IN may be written in small letters.
 *
 * @throws AppError invalid_argument that says where (in characters, from 1) and what was expected.
 */
export function parseFilter<const Fs extends FilterFields>(text: string, fields: Fs): Filter<keyof Fs & string> {
  if (text.length > FILTER_LIMITS.characters) {
    throw refusal(`is ${text.length} characters long, and ${FILTER_LIMITS.characters} are the most`);
  }
  const reader = new Reader(text);
  const terms: FilterTerm<keyof Fs & string>[] = [];
  if (reader.atEnd()) return terms;
  for (;;) {
    if (terms.length === FILTER_LIMITS.terms) throw reader.refuse(`at most ${FILTER_LIMITS.terms} conditions`);
    terms.push(parseTerm(reader, fields));
    if (reader.atEnd()) return terms;
    if (!reader.takeKeyword("AND")) throw reader.expected("AND or the end");
  }
}

/** Whether all terms hold of a thing; what is not set is empty text, as it is in SQL. */
export const matchesFilter = <F extends string>(filter: Filter<F>, read: (term: FilterTerm<F>) => string): boolean =>
  filter.every((term) => {
    const value = read(term);
    if (term.operator === "in") return term.values.includes(value);
    return (term.operator === "=") === (term.value === value);
  });

/** The filter as text that parses to the same filter. */
export function printFilter(filter: Filter): string {
  return filter
    .map((term) => {
      const field = term.key === undefined ? term.field : `${term.field}.${quoteIfNeeded(term.key)}`;
      return term.operator === "in"
        ? `${field} IN (${term.values.map(quoteIfNeeded).join(", ")})`
        : `${field}${term.operator}${quoteIfNeeded(term.value)}`;
    })
    .join(" AND ");
}

function parseTerm<Fs extends FilterFields>(reader: Reader, fields: Fs): FilterTerm<keyof Fs & string> {
  const { field, key, spec } = parseField(reader, fields);
  const where = key === undefined ? { field } : { field, key };
  const value = () => parseValue(reader, field, spec);
  if (reader.take("!=")) return { ...where, operator: "!=", value: value() };
  if (reader.take("=")) return { ...where, operator: "=", value: value() };
  if (!reader.takeKeyword("IN")) throw reader.expected("=, != or IN");
  if (!reader.take("(")) throw reader.expected("(");
  const values = [value()];
  while (reader.take(",")) {
    if (values.length === FILTER_LIMITS.values) throw reader.refuse(`at most ${FILTER_LIMITS.values} values`);
    values.push(value());
  }
  if (!reader.take(")")) throw reader.expected(", or )");
  return { ...where, operator: "in", values };
}

interface FieldReference<F extends string> {
  readonly field: F;
  readonly key?: string;
  readonly spec: FilterField;
}

function parseField<Fs extends FilterFields>(reader: Reader, fields: Fs): FieldReference<keyof Fs & string> {
  const known = `a field (${Object.entries(fields)
    .map(([name, spec]) => (spec === "labels" ? `${name}.<key>` : name))
    .join(", ")})`;
  const start = reader.mark();
  const word = reader.takeBare();
  if (word === undefined) throw reader.expected(known);
  const whole = specOf(fields, word);
  if (whole !== undefined && whole !== "labels") return { field: word, spec: whole };
  const dot = word.indexOf(".");
  const name = word.slice(0, dot);
  const spec = dot === -1 ? undefined : specOf(fields, name);
  if (spec !== "labels") throw reader.expectedAt(start, known);
  const key = dot === word.length - 1 ? reader.takeQuoted() : word.slice(dot + 1);
  if (key === undefined || key === "") throw reader.expectedAt(start, `${name}.<key>`);
  return { field: name, key, spec };
}

const specOf = (fields: FilterFields, name: string): FilterField | undefined =>
  Object.hasOwn(fields, name) ? fields[name] : undefined;

function parseValue(reader: Reader, field: string, spec: FilterField): string {
  const start = reader.mark();
  const quoted = reader.takeQuoted();
  const bare = quoted === undefined ? reader.takeBare() : undefined;
  const value = quoted ?? bare;
  if (value === undefined) throw reader.expectedAt(start, `a value for ${field}`);
  if (bare !== undefined && isKeyword(bare)) {
    throw reader.expectedAt(start, `a value for ${field} (in quotes where it is the word ${bare})`);
  }
  if (typeof spec === "string") return value;
  const words = "words" in spec ? spec.words : spec;
  const word = "words" in spec ? spec.read(value) : words.find((each) => each === value);
  if (word === undefined) throw reader.expectedAt(start, `for ${field} one of ${words.join(", ")}`, value);
  return word;
}

const isKeyword = (word: string): boolean => KEYWORDS.has(word.toUpperCase());

function quoteIfNeeded(value: string): string {
  BARE.lastIndex = 0;
  const bare = BARE.exec(value)?.[0];
  return bare === value && !isKeyword(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;
}

const refusal = (why: string): AppError => new AppError("invalid_argument", `filter: ${why}`, { field: "filter" });

/** Walks over the text. Blanks before a mark or word do not matter; within `labels."key"` and quotes they do. */
class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Where the next mark or word begins. */
  mark(): number {
    this.skipBlanks();
    return this.#at;
  }

  skipBlanks(): void {
    BLANKS.lastIndex = this.#at;
    this.#at += BLANKS.exec(this.#text)?.[0].length ?? 0;
  }

  atEnd(): boolean {
    this.skipBlanks();
    return this.#at === this.#text.length;
  }

  take(mark: string): boolean {
    this.skipBlanks();
    if (!this.#text.startsWith(mark, this.#at)) return false;
    this.#at += mark.length;
    return true;
  }

  takeBare(): string | undefined {
    this.skipBlanks();
    BARE.lastIndex = this.#at;
    const word = BARE.exec(this.#text)?.[0];
    if (word === undefined) return undefined;
    this.#refuseUnstorable(word, this.#at);
    this.#at += word.length;
    return word;
  }

  takeKeyword(keyword: string): boolean {
    this.skipBlanks();
    const start = this.#at;
    if (this.takeBare()?.toUpperCase() === keyword) return true;
    this.#at = start;
    return false;
  }

  /** Only right here: no blanks are skipped. */
  takeQuoted(): string | undefined {
    const start = this.#at;
    const quote = this.#text[start];
    if (quote !== '"' && quote !== "'") return undefined;
    let value = "";
    for (let at = start + 1; at < this.#text.length; at += 1) {
      const character = this.#text[at];
      if (character === quote) {
        this.#refuseUnstorable(value, start);
        this.#at = at + 1;
        return value;
      }
      if (character === "\\") {
        at += 1;
        const escaped = this.#text[at];
        if (escaped !== "\\" && escaped !== '"' && escaped !== "'") throw this.expectedAt(at, '" or \\ after \\');
        value += escaped;
      } else value += character;
    }
    throw refusal(`at position ${start + 1}: the quote ${quote} is never closed`);
  }

  refuse(what: string): AppError {
    return refusal(`at position ${this.#at + 1}: ${what} are allowed`);
  }

  expected(what: string): AppError {
    this.skipBlanks();
    return this.expectedAt(this.#at, what);
  }

  /** `value` is what was found where it was read already, without its quotes. */
  expectedAt(at: number, what: string, value?: string): AppError {
    const rest = this.#text.slice(at).trimEnd();
    const word = value?.slice(0, 40) ?? /^[^\s=!(),"']{1,40}|^./u.exec(rest)?.[0] ?? "";
    const found = rest === "" ? "the end" : JSON.stringify(word);
    return refusal(`at position ${at + 1}: expected ${what}, found ${found}`);
  }

  /** The database can hold neither; found here, the answer says where. */
  #refuseUnstorable(text: string, at: number): void {
    if (text.includes("\0") || !text.isWellFormed()) {
      throw refusal(`at position ${at + 1}: NUL and halves of surrogate pairs are not allowed`);
    }
  }
}
