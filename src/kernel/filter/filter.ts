import type { FieldRef, Operator } from "./fields.ts";

/** One comparison. Numbers and times are written as text here: a time as `toISOString` writes it. */
export type FilterTerm<F extends string = string> = FieldRef<F> &
  (
    | { readonly operator: Exclude<Operator, "in">; readonly value: string }
    | { readonly operator: "in"; readonly values: readonly string[] }
  );

/** A comparison, a choice of which at least one must hold, or what must not hold. */
export type FilterClause<F extends string = string> =
  | FilterTerm<F>
  | { readonly any: readonly Filter<F>[] }
  | { readonly not: Filter<F> };

/** Clauses that must all hold; none admits everything. */
export type Filter<F extends string = string> = readonly FilterClause<F>[];

/** At least one of the filters holds. A choice among choices is one choice. */
export function anyOf<F extends string>(filters: readonly Filter<F>[]): Filter<F> {
  const [only] = filters;
  if (only && filters.length === 1) return only;
  return [{ any: filters.flatMap((filter) => choicesOf(filter)) }];
}

function choicesOf<F extends string>(filter: Filter<F>): readonly Filter<F>[] {
  const [clause] = filter;
  return filter.length === 1 && clause && "any" in clause ? clause.any : [filter];
}

/** All comparisons of a filter, wherever they stand. */
export const termsOf = <F extends string>(filter: Filter<F>): FilterTerm<F>[] =>
  filter.flatMap((clause) => {
    if ("any" in clause) return clause.any.flatMap(termsOf);
    return "not" in clause ? termsOf(clause.not) : [clause];
  });

/** What a field holds of a thing. Null and an empty list are as empty text. */
export type FieldValue = string | number | Date | readonly string[] | null;

/**
 * Whether the filter admits a thing of which `read` gives the values; undefined where that depends on values that `read` does not
 * know, for which it gives undefined.
 */
export function judgeFilter<F extends string>(
  filter: Filter<F>,
  read: (term: FilterTerm<F>) => FieldValue | undefined,
): boolean | undefined {
  let all: boolean | undefined = true;
  for (const clause of filter) {
    const holds = judgeClause(clause, read);
    if (holds === false) return false;
    if (holds === undefined) all = undefined;
  }
  return all;
}

function judgeClause<F extends string>(
  clause: FilterClause<F>,
  read: (term: FilterTerm<F>) => FieldValue | undefined,
): boolean | undefined {
  if ("not" in clause) {
    const holds = judgeFilter(clause.not, read);
    return holds === undefined ? undefined : !holds;
  }
  if ("any" in clause) {
    const each = clause.any.map((filter) => judgeFilter(filter, read));
    return each.includes(true) ? true : each.includes(undefined) ? undefined : false;
  }
  const value = read(clause);
  return value === undefined ? undefined : compare(clause, value);
}

function compare(term: FilterTerm, value: FieldValue): boolean {
  if (term.operator === "in") return term.values.some((each) => isEqual(value, each));
  const { operator, value: wanted } = term;
  switch (operator) {
    case "=":
      return isEqual(value, wanted);
    case "!=":
      return !isEqual(value, wanted);
    case "~":
      return textsOf(value).some((text) => foldCase(text).includes(foldCase(wanted)));
    case "!~":
      return textsOf(value).every((text) => !foldCase(text).includes(foldCase(wanted)));
    case "^=":
      return textsOf(value).some((text) => foldCase(text).startsWith(foldCase(wanted)));
    default: {
      const difference = differenceOf(value, wanted);
      if (difference === undefined) return false;
      if (operator === "<") return difference < 0;
      if (operator === "<=") return difference <= 0;
      return operator === ">" ? difference > 0 : difference >= 0;
    }
  }
}

const isEmpty = (value: FieldValue): boolean => value === null || (Array.isArray(value) && value.length === 0);

function isEqual(value: FieldValue, wanted: string): boolean {
  if (isEmpty(value) || wanted === "") return wanted === "" && (isEmpty(value) || value === "");
  if (typeof value === "number") return value === Number(wanted);
  if (value instanceof Date) return value.getTime() === new Date(wanted).getTime();
  return textsOf(value).includes(wanted);
}

function differenceOf(value: FieldValue, wanted: string): number | undefined {
  if (typeof value === "number") return value - Number(wanted);
  return value instanceof Date ? value.getTime() - new Date(wanted).getTime() : undefined;
}

function textsOf(value: FieldValue): readonly string[] {
  if (typeof value === "string") return [value];
  if (value === null) return [""];
  return Array.isArray(value) ? value : [];
}

/** Of the letters A to Z alone: what the database makes of others depends on how it was set up. */
export const foldCase = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
