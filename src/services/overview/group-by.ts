import { AppError } from "../../kernel/errors.ts";
import type { FieldRef, FilterFields } from "../../kernel/filter/fields.ts";
import { parseField } from "../../kernel/filter/parse-field.ts";
import { QueryReader } from "../../kernel/filter/reader.ts";

const MOST_FIELDS = 3;

/** The fields of `group_by`, as they are written in a filter. */
export function groupsFrom(words: readonly string[], fields: FilterFields): FieldRef[] {
  const refuse = (why: string) => new AppError("invalid_argument", `group_by: ${why}`, { field: "group_by" });
  if (words.length > MOST_FIELDS) throw refuse(`at most ${MOST_FIELDS} fields, got ${words.length}`);
  return words.map((word, at) => {
    const reader = new QueryReader(word, "group_by", 1_000);
    const { field, key, type } = parseField(reader, fields);
    if (!reader.atEnd()) throw reader.expected("the end");
    if (type === "time") throw refuse(`${field} is a time, and its values are no groups`);
    if (words.indexOf(word) !== at) throw refuse(`${word.slice(0, 80)} is there twice`);
    return key === undefined ? { field } : { field, key };
  });
}
