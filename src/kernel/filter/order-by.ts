import type { FieldRef, FilterFields } from "./fields.ts";
import { parseField } from "./parse-field.ts";
import { printField } from "./print-filter.ts";
import { QueryReader } from "./reader.ts";

/** What a list is sorted by, and in which direction. */
export interface SortKey<F extends string = string> extends FieldRef<F> {
  readonly descending: boolean;
}

const LIMITS = { characters: 1_024, keys: 5 } as const;

/**
 * Reads fields with commas between, each with `asc` or `desc` behind it if need be: `rack, created_at desc`.
 *
 * @param fields Those that can be sorted by.
 * @throws AppError invalid_argument that says where (in characters, from 1), what was found there and what was expected.
 */
export function parseOrderBy<const Fs extends FilterFields>(text: string, fields: Fs): SortKey<keyof Fs & string>[] {
  const reader = new QueryReader(text, "order_by", LIMITS.characters);
  const keys: SortKey<keyof Fs & string>[] = [];
  if (reader.atEnd()) return keys;
  do {
    if (keys.length === LIMITS.keys) throw reader.refuse(`at most ${LIMITS.keys} fields`);
    const start = reader.mark();
    const { field, key } = parseField(reader, fields, "a field to sort by");
    const descending = reader.takeKeyword("DESC") || (reader.takeKeyword("ASC") && false);
    const sortKey = key === undefined ? { field, descending } : { field, key, descending };
    if (keys.some((each) => each.field === field && each.key === key))
      throw reader.refuseAt(start, `${printField(sortKey)} is named twice`);
    keys.push(sortKey);
  } while (reader.take(","));
  if (!reader.atEnd()) throw reader.expected("a comma, asc, desc or the end");
  return keys;
}

/** The order as text that parses to the same order. */
export const printOrderBy = (keys: readonly SortKey[]): string =>
  keys.map((key) => `${printField(key)}${key.descending ? " desc" : ""}`).join(", ");
