import { type FieldType, type FilterFields, type Operator, operatorsOf, wordsOf } from "./fields.ts";
import { anyOf, type Filter, type FilterTerm } from "./filter.ts";
import { type FieldReference, parseField } from "./parse-field.ts";
import { parseTime } from "./parse-time.ts";
import { BEGINS_AS_OPERATOR, QueryReader } from "./reader.ts";

export const FILTER_LIMITS = { characters: 8_192, terms: 50, values: 500, depth: 20 } as const;

/** Words that no value is without quotes: found as one, the value was forgotten. */
const NO_VALUES = new Set(["AND", "IN"]);

/** The longer ones first: `<` begins `<=`. */
const OPERATORS = ["!=", "!~", "^=", "<=", ">=", "=", "~", "<", ">"] as const satisfies readonly Operator[];

/**
 * Reads comparisons joined with AND, OR, NOT and parentheses; NOT binds closest, then AND, then OR.
 *
 * A comparison is `field=value`, `!=`, `field IN (value, value)`; for text also `~` (contains) and `^=` (begins with), both whatever
 * the case of A to Z, and `!~`; for numbers and times `<`, `<=`, `>`, `>=`. `field=""` holds where nothing is set. Times are like
 * 2026-01-31T12:00:00Z, or like -2h for two hours ago. Values with blanks or marks stand in single or double quotes, where `\` takes
 * the next quote or `\` as it is; so does the key of a label (`labels."a b"`). The words may be written in small letters.
 *
 * @param now For times that are relative to it; asked only where there is one.
 * @throws AppError invalid_argument that says where (in characters, from 1), what was found there and what was expected.
 */
export function parseFilter<const Fs extends FilterFields>(
  text: string,
  fields: Fs,
  now: () => Date = () => new Date(),
): Filter<keyof Fs & string> {
  const reader = new QueryReader(text, "filter", FILTER_LIMITS.characters);
  if (reader.atEnd()) return [];
  const filter = new FilterParser(reader, fields, now).parseChoice(0);
  if (!reader.atEnd()) throw reader.expected("AND, OR or the end");
  return filter;
}

class FilterParser<Fs extends FilterFields> {
  readonly #reader: QueryReader;
  readonly #fields: Fs;
  readonly #now: () => Date;
  #terms = 0;

  constructor(reader: QueryReader, fields: Fs, now: () => Date) {
    this.#reader = reader;
    this.#fields = fields;
    this.#now = now;
  }

  parseChoice(depth: number): Filter<keyof Fs & string> {
    const choices = [this.#parseAll(depth)];
    while (this.#reader.takeKeyword("OR")) choices.push(this.#parseAll(depth));
    return anyOf(choices);
  }

  #parseAll(depth: number): Filter<keyof Fs & string> {
    const clauses = [...this.#parseOne(depth)];
    while (this.#reader.takeKeyword("AND")) clauses.push(...this.#parseOne(depth));
    return clauses;
  }

  #parseOne(depth: number): Filter<keyof Fs & string> {
    const reader = this.#reader;
    if (depth > FILTER_LIMITS.depth) throw reader.refuse(`at most ${FILTER_LIMITS.depth} parentheses or NOTs in a row`);
    if (reader.takeKeyword("NOT")) return [{ not: this.#parseOne(depth + 1) }];
    if (!reader.take("(")) return [this.#parseTerm()];
    const inside = this.parseChoice(depth + 1);
    if (!reader.take(")")) throw reader.expected("AND, OR or )");
    return inside;
  }

  #parseTerm(): FilterTerm<keyof Fs & string> {
    const reader = this.#reader;
    if (this.#terms === FILTER_LIMITS.terms) throw reader.refuse(`at most ${FILTER_LIMITS.terms} conditions`);
    this.#terms += 1;
    const reference = parseField(reader, this.#fields);
    const { field, key, type } = reference;
    const where = key === undefined ? { field } : { field, key };
    const operator = this.#takeOperator(type);
    if (operator === "in") return { ...where, operator, values: this.#parseValues(reference) };
    return { ...where, operator, value: parseValue(reader, field, type, operator, this.#now) };
  }

  #takeOperator(type: FieldType): Operator {
    const reader = this.#reader;
    const start = reader.mark();
    const operator = OPERATORS.find((mark) => reader.take(mark)) ?? (reader.takeKeyword("IN") ? "in" : undefined);
    const known = operatorsOf(type);
    if (operator !== undefined && known.includes(operator)) return operator;
    throw reader.expectedAt(start, nameOperators(known), operator);
  }

  #parseValues({ field, type }: FieldReference<string>): string[] {
    const reader = this.#reader;
    const value = () => parseValue(reader, field, type, "in", this.#now);
    if (!reader.take("(")) throw reader.expected("(");
    const values = [value()];
    while (reader.take(",")) {
      if (values.length === FILTER_LIMITS.values) throw reader.refuse(`at most ${FILTER_LIMITS.values} values`);
      values.push(value());
    }
    if (!reader.take(")")) throw reader.expected(", or )");
    return values;
  }
}

/** "=, != or IN". */
function nameOperators(operators: readonly Operator[]): string {
  const words = operators.map((operator) => (operator === "in" ? "IN" : operator));
  const last = words.at(-1) ?? "";
  return words.length < 2 ? last : `${words.slice(0, -1).join(", ")} or ${last}`;
}

function parseValue(reader: QueryReader, field: string, type: FieldType, operator: Operator, now: () => Date): string {
  const start = reader.mark();
  const quoted = reader.takeQuoted();
  const bare = quoted === undefined ? reader.takeBare() : undefined;
  const value = quoted ?? bare;
  if (value === undefined) throw reader.expectedAt(start, `a value for ${field}`);
  if (bare !== undefined && NO_VALUES.has(bare.toUpperCase()))
    throw reader.expectedAt(start, `a value for ${field} (in quotes where it is the word ${bare})`);
  if (bare !== undefined && BEGINS_AS_OPERATOR.test(bare))
    throw reader.expectedAt(start, `a value for ${field} (in quotes where it begins with ${bare.slice(0, 1)})`);
  return checkValue(value, {
    type,
    operator,
    now,
    refuse: (what) => reader.expectedAt(start, what.replace("%", field), value),
  });
}

interface ValueCheck {
  readonly type: FieldType;
  readonly operator: Operator;
  readonly now: () => Date;
  /** `%` in it stands for the field. */
  readonly refuse: (expected: string) => Error;
}

const isOrder = (operator: Operator): boolean => operator.startsWith("<") || operator.startsWith(">");
const NUMBER = /^[+-]?\d{1,15}(\.\d{1,15})?$/;

/** The value as it is compared. */
function checkValue(value: string, { type, operator, now, refuse }: ValueCheck): string {
  const words = wordsOf(type);
  if (words !== undefined) {
    const isSpelled = typeof type === "object" && "read" in type;
    const word = isSpelled ? type.read(value) : words.find((each) => each === value);
    if (word === undefined) throw refuse(`for % one of ${words.map((each) => each || '""').join(", ")}`);
    return word;
  }
  if (type === "number") {
    if (value === "" && !isOrder(operator)) return value;
    if (!NUMBER.test(value)) throw refuse("for % a number");
    return String(Number(value));
  }
  if (type === "time") {
    if (value === "" && !isOrder(operator)) return value;
    if (!isOrder(operator)) throw refuse('for % with = or != only "", which means that there is none');
    const time = parseTime(value, now);
    if (time === undefined) throw refuse("for % a time such as 2026-01-31T12:00:00Z, or -2h for two hours ago");
    return time.toISOString();
  }
  if (value === "" && (operator === "~" || operator === "!~" || operator === "^=")) throw refuse("for % some text");
  return typeof type === "object" && "spell" in type && !operator.includes("~") && operator !== "^="
    ? type.spell(value)
    : value;
}
