import { parseRackId as parseGiven } from "../../kernel/ids.ts";

/** Whatever the site calls its racks; empty or absent: none. */
export const parseRackId = (text: string | undefined, field: string): string | null =>
  text === undefined || text === "" ? null : parseGiven(text, field);
