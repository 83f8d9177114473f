import type { Filter, FilterTerm } from "../../kernel/filter.ts";

/** Where a field is in SQL: a text expression, or a `jsonb` column with text by key. Never made from what a caller sent. */
export type FilterColumn = string | { readonly labels: string };
export type FilterColumns<F extends string> = Readonly<Record<F, FilterColumn>>;

/**
 * The filter as a condition; `values` grows by the parameters that it refers to, so that it can stand among others.
 *
 * What is not set counts as empty text, as callers see it: `rack=""` finds machines without a rack, and `rack!=a` finds them
 * too. Labels are compared by containment where one value is asked for, which a GIN index answers.
 */
export function filterSql<F extends string>(filter: Filter<F>, columns: FilterColumns<F>, values: unknown[]): string {
  if (filter.length === 0) return "true";
  const parameter = (value: unknown) => `$${values.push(value)}`;
  return filter.map((term) => termSql(term, columns[term.field], parameter)).join(" and ");
}

type Parameter = (value: unknown) => string;

function termSql(term: FilterTerm, column: FilterColumn, parameter: Parameter): string {
  if (typeof column === "string") return comparisonSql(column, term, parameter);
  const { key } = term;
  if (key === undefined) throw new Error(`the filter compares ${term.field} without a key`);
  if (term.operator !== "in" && term.value !== "") {
    // A computed key is an own property, also where it is __proto__.
    const contains = `${column.labels} @> ${parameter(JSON.stringify({ [key]: term.value }))}::jsonb`;
    return term.operator === "=" ? contains : `not (${contains})`;
  }
  return comparisonSql(`(${column.labels} ->> ${parameter(key)}::text)`, term, parameter);
}

function comparisonSql(expression: string, term: FilterTerm, parameter: Parameter): string {
  if (term.operator === "in") {
    const isOneOf = `${expression} = any(${parameter(term.values)}::text[])`;
    return term.values.includes("") ? `(${isOneOf} or ${expression} is null)` : isOneOf;
  }
  if (term.value === "") return `coalesce(${expression}, '') ${term.operator === "=" ? "=" : "<>"} ''`;
  const operator = term.operator === "=" ? "=" : "is distinct from";
  return `${expression} ${operator} ${parameter(term.value)}::text`;
}
