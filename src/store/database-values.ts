import pg from "pg";

const { builtins } = pg.types;
const TEXT_ARRAY = 1009;
const INT8_ARRAY = 1016;
const DATE = builtins.DATE;
const parseTextArray = pg.types.getTypeParser(TEXT_ARRAY as number, "text") as (text: string) => (string | null)[];

/** Counters and versions are bigint in the database and never that large; one that is must not be rounded silently. */
export function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value))
    throw new RangeError(`the database holds ${text}, which is too large for a number: select it ::text`);
  return value;
}

/**
 * How values arrive: int8 as a number, timestamptz as Date, json parsed, bytea as Buffer; numeric and xid8 as the text they
 * are, and so a date, which would otherwise become midnight in some time zone.
 */
export const valueParsers = {
  getTypeParser(oid: number, format?: "text" | "binary") {
    if (format !== "binary") {
      if (oid === builtins.INT8) return parseInt8;
      if (oid === INT8_ARRAY)
        return (text: string) => parseTextArray(text).map((item) => (item === null ? null : parseInt8(item)));
      if (oid === DATE) return (text: string) => text;
    }
    return pg.types.getTypeParser(oid, format as "text");
  },
};
