import { AppError } from "../../kernel/errors.ts";

const LONGEST = 64;

/** Whatever the site calls its racks; empty or absent: none. */
export function parseRackId(text: string | undefined, field: string): string | null {
  if (text === undefined || text === "") return null;
  if (text.length <= LONGEST) return text;
  throw new AppError("invalid_argument", `${field}: at most ${LONGEST} characters`, { field });
}
