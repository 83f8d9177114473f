import { type FieldRef, type FieldType, type FilterFields, nameFields } from "./fields.ts";
import type { QueryReader } from "./reader.ts";

export interface FieldReference<F extends string> extends FieldRef<F> {
  readonly type: FieldType;
}

/** @param what What is expected here, before the list of those that there are. */
export function parseField<Fs extends FilterFields>(
  reader: QueryReader,
  fields: Fs,
  what = "a field",
): FieldReference<keyof Fs & string> {
  const known = `${what} (${nameFields(fields)})`;
  const start = reader.mark();
  const word = reader.takeName();
  if (word === undefined) throw reader.expected(known);
  const whole = typeOf(fields, word);
  if (whole !== undefined && whole !== "labels") return { field: word, type: whole };
  const dot = word.indexOf(".");
  const name = word.slice(0, dot);
  const type = dot === -1 ? undefined : typeOf(fields, name);
  if (type !== "labels") throw reader.expectedAt(start, known);
  const key = dot === word.length - 1 ? reader.takeQuoted() : word.slice(dot + 1);
  if (key === undefined || key === "") throw reader.expectedAt(start, `${name}.<key>`);
  return { field: name, key, type };
}

const typeOf = (fields: FilterFields, name: string): FieldType | undefined =>
  Object.hasOwn(fields, name) ? fields[name] : undefined;
