import pg from "pg";

const parseAnyTimestamp = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ, "text") as (text: string) => Date;

/**
 * A point in time as PostgreSQL writes it to a session in UTC: `2026-01-31 12:00:00.123456+00`. Every row has several of them, and
 * reading them by a regular expression takes longer than all its other columns. Whatever looks otherwise is left to the driver.
 */
export function parseTimestamp(text: string): Date {
  const end = text.length - 3;
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2);
  // Years before 100 mean others to JavaScript.
  if (text.charCodeAt(4) !== DASH || year < 100 || end < 19 || !text.endsWith("+00")) return parseAnyTimestamp(text);
  const milliseconds = end === 19 ? 0 : Math.floor(Number(text.slice(19, end)) * 1_000 + ROUNDING);
  return new Date(
    Date.UTC(
      year,
      twoDigits(text, 5) - 1,
      twoDigits(text, 8),
      twoDigits(text, 11),
      twoDigits(text, 14),
      twoDigits(text, 17),
      milliseconds,
    ),
  );
}

const DASH = "-".charCodeAt(0);
const ZERO = "0".charCodeAt(0);
/** Less than a microsecond, and more than a binary fraction is off by: `.009` is nine milliseconds. */
const ROUNDING = 1e-4;

const twoDigits = (text: string, at: number): number =>
  (text.charCodeAt(at) - ZERO) * 10 + (text.charCodeAt(at + 1) - ZERO);
