import type { FieldRef } from "./fields.ts";
import type { Filter, FilterClause } from "./filter.ts";
import { isBare, isBareName } from "./reader.ts";

/** The filter as text that parses to the same filter. */
export const printFilter = (filter: Filter): string =>
  filter.map((clause) => printClause(clause, filter)).join(" AND ");

function printClause(clause: FilterClause, among: Filter): string {
  if ("not" in clause) {
    const inside = printFilter(clause.not);
    return clause.not.length === 1 && !isChoice(clause.not) ? `NOT ${inside}` : `NOT (${inside})`;
  }
  if ("any" in clause) {
    const choices = clause.any.map(printFilter).join(" OR ");
    return among.length === 1 ? choices : `(${choices})`;
  }
  const field = printField(clause);
  if (clause.operator === "in") return `${field} IN (${clause.values.map(printValue).join(", ")})`;
  return `${field}${clause.operator}${printValue(clause.value)}`;
}

const isChoice = ([clause]: Filter): boolean => clause !== undefined && "any" in clause;

export const printField = ({ field, key }: FieldRef): string =>
  key === undefined ? field : `${field}.${isBareName(key) ? key : quote(key)}`;

const printValue = (value: string): string => (isBare(value) && !/^(and|in)$/i.test(value) ? value : quote(value));

const quote = (text: string): string => `"${text.replace(/["\\]/g, "\\$&")}"`;
