import type { Operator } from "../../kernel/filter/fields.ts";
import { type Filter, type FilterClause, type FilterTerm, foldCase } from "../../kernel/filter/filter.ts";

/**
 * Where a field is in SQL: a text expression, or `jsonb` with text by key, a list of texts, a number, a time, or a time that is kept
 * as text in the form of `toISOString`. Never made from what a caller sent.
 */
export type FilterColumn =
  | string
  | { readonly labels: string }
  | { readonly tags: string }
  | { readonly number: string }
  | { readonly time: string }
  | { readonly isoTime: string };
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
  return filter.map((clause) => clauseSql(clause, columns, parameter)).join(" and ");
}

type Parameter = (value: unknown) => string;

function clauseSql<F extends string>(clause: FilterClause<F>, columns: FilterColumns<F>, parameter: Parameter): string {
  const all = (filter: Filter<F>) => filter.map((each) => clauseSql(each, columns, parameter)).join(" and ");
  if ("any" in clause) return `(${clause.any.map((filter) => `(${all(filter)})`).join(" or ")})`;
  // Not `not`: a comparison with what is not set is neither true nor false, and must then not hold.
  if ("not" in clause) return `(${all(clause.not)}) is not true`;
  return termSql(clause, columns[clause.field], parameter);
}

function termSql(term: FilterTerm, column: FilterColumn, parameter: Parameter): string {
  if (typeof column === "string") return textSql(column, term, parameter);
  if ("labels" in column) return labelSql(column.labels, term, parameter);
  if ("tags" in column) return tagsSql(column.tags, term, parameter);
  if ("number" in column) return orderedSql(column.number, "numeric", term, parameter);
  if ("time" in column) return orderedSql(column.time, "timestamptz", toTheMillisecond(term), parameter);
  // The form sorts as the times do, where bytes are compared.
  return orderedSql(`${column.isoTime} collate "C"`, "text", term, parameter);
}

function labelSql(labels: string, term: FilterTerm, parameter: Parameter): string {
  const { key } = term;
  if (key === undefined) throw new Error(`the filter compares ${term.field} without a key`);
  if ((term.operator === "=" || term.operator === "!=") && term.value !== "") {
    // A computed key is an own property, also where it is __proto__.
    const contains = `${labels} @> ${parameter(JSON.stringify({ [key]: term.value }))}::jsonb`;
    return term.operator === "=" ? contains : `not (${contains})`;
  }
  return textSql(`(${labels} ->> ${parameter(key)}::text)`, term, parameter);
}

function textSql(expression: string, term: FilterTerm, parameter: Parameter): string {
  if (term.operator === "in") {
    const isOneOf = `${expression} = any(${parameter(term.values)}::text[])`;
    return term.values.includes("") ? `(${isOneOf} or ${expression} is null)` : isOneOf;
  }
  const { operator, value } = term;
  if (operator === "~" || operator === "!~" || operator === "^=")
    return matchSql(`coalesce(${expression}, '')`, operator, parameter(foldCase(value)));
  if (value === "") return `coalesce(${expression}, '') ${operator === "=" ? "=" : "<>"} ''`;
  return `${expression} ${operator === "=" ? "=" : "is distinct from"} ${parameter(value)}::text`;
}

/** In the collation "C" only the letters A to Z have another case, in every database alike. */
function matchSql(text: string, operator: "~" | "!~" | "^=", pattern: string): string {
  const folded = `lower(${text} collate "C")`;
  if (operator === "^=") return `starts_with(${folded}, ${pattern}::text)`;
  return `strpos(${folded}, ${pattern}::text) ${operator === "~" ? ">" : "="} 0`;
}

function tagsSql(tags: string, term: FilterTerm, parameter: Parameter): string {
  if (term.operator === "in") {
    const hasOne = `${tags} && ${parameter(term.values)}::text[]`;
    return term.values.includes("") ? `(${hasOne} or cardinality(${tags}) = 0)` : hasOne;
  }
  const { operator, value } = term;
  if (operator === "~" || operator === "!~" || operator === "^=") {
    const matches = matchSql("tag", operator === "^=" ? "^=" : "~", parameter(foldCase(value)));
    return `${operator === "!~" ? "not " : ""}exists (select from unnest(${tags}) as tag where ${matches})`;
  }
  if (value === "") return `cardinality(${tags}) ${operator === "=" ? "=" : ">"} 0`;
  const has = `${tags} @> array[${parameter(value)}::text]`;
  return operator === "=" ? has : `not (${has})`;
}

/** People see milliseconds, and the database keeps more: what is shown as equal is neither more nor less. */
function toTheMillisecond(term: FilterTerm): FilterTerm {
  if (term.operator !== ">" && term.operator !== "<=") return term;
  const value = new Date(new Date(term.value).getTime() + 1).toISOString();
  return { ...term, operator: term.operator === ">" ? ">=" : "<", value };
}

const DISTINCT: Readonly<Partial<Record<Operator, string>>> = { "!=": "is distinct from" };

/** Numbers and times: nothing is less or more than what is not set. */
function orderedSql(expression: string, type: string, term: FilterTerm, parameter: Parameter): string {
  if (term.operator === "in") {
    const values = term.values.filter((value) => value !== "");
    const isOneOf = `${expression} = any(${parameter(values)}::${type}[])`;
    return values.length < term.values.length ? `(${isOneOf} or ${expression} is null)` : isOneOf;
  }
  const { operator, value } = term;
  if (value === "") return `${expression} is ${operator === "=" ? "" : "not "}null`;
  return `${expression} ${DISTINCT[operator] ?? operator} ${parameter(value)}::${type}`;
}
