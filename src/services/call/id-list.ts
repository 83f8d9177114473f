import { AppError } from "../../kernel/errors.ts";

/** Between one and the most ids, each well-formed; repeated ones count once. */
export function checkIdList<Id extends string>(
  texts: readonly string[],
  options: { readonly field: string; readonly most: number; readonly parse: (text: string, field: string) => Id },
): Id[] {
  const { field, most, parse } = options;
  if (texts.length === 0) throw new AppError("invalid_argument", `${field}: at least one id is required`, { field });
  if (texts.length > most) {
    throw new AppError("invalid_argument", `${field}: at most ${most} ids in one call, got ${texts.length}`, { field });
  }
  return [...new Set(texts.map((text) => parse(text, field)))];
}
