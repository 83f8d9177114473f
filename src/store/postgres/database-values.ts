import pg from "pg";
import { parseTimestamp } from "./timestamp-text.ts";

const { builtins } = pg.types;
const TEXT_ARRAY = 1009;
const INT8_ARRAY = 1016;
const DATE = builtins.DATE;
const parseAnyTextArray = pg.types.getTypeParser(TEXT_ARRAY as number, "text") as (text: string) => (string | null)[];

/** Quotes stand around all that is not a plain word; without them, and without a null, there is nothing but commas. */
export function parseTextArray(text: string): (string | null)[] {
  if (text === "{}") return [];
  const isPlain = text.startsWith("{") && !/["\\]|\{.*\{|NULL/i.test(text);
  return isPlain ? text.slice(1, -1).split(",") : parseAnyTextArray(text);
}

/** Counters and versions are bigint in the database and never that large; one that is must not be rounded silently. */
function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value))
    throw new RangeError(`the database holds ${text}, which is too large for a number: select it ::text`);
  return value;
}

type Parse = (text: string) => unknown;

/**
 * How values arrive: int8 as a number, timestamptz as Date, json parsed, bytea as Buffer; numeric and xid8 as the text they
 * are, and so a date, which would otherwise become midnight in some time zone.
 */
const PARSERS: Readonly<Record<number, Parse>> = {
  [builtins.INT8]: parseInt8,
  [INT8_ARRAY]: (text) => parseTextArray(text).map((item) => (item === null ? null : parseInt8(item))),
  [DATE]: (text) => text,
  [builtins.TIMESTAMPTZ]: parseTimestamp,
  [TEXT_ARRAY]: parseTextArray,
};

export const valueParsers = {
  getTypeParser(oid: number, format?: "text" | "binary") {
    return (format !== "binary" && PARSERS[oid]) || pg.types.getTypeParser(oid, format as "text");
  },
};
