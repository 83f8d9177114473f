import { type Duration, hours, minutes, seconds } from "../time/duration.ts";

const ABSOLUTE = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/;
const RELATIVE = /^-(\d{1,9})([smhd])$/;

const UNITS: Readonly<Record<string, (count: number) => Duration>> = {
  s: seconds,
  m: minutes,
  h: hours,
  d: (count) => hours(24 * count),
};

/** A day (its beginning, in UTC), a moment with its zone, or `-2h` for two hours before now; undefined for anything else. */
export function parseTime(text: string, now: () => Date): Date | undefined {
  const [, count, unit] = RELATIVE.exec(text) ?? [];
  if (count !== undefined && unit !== undefined) {
    const ago = UNITS[unit]?.(Number(count)) ?? 0;
    return existing(new Date(now().getTime() - ago));
  }
  const isOnCalendar =
    ABSOLUTE.test(text) &&
    existing(new Date(text.slice(0, 10)))
      ?.toISOString()
      .startsWith(text.slice(0, 10));
  return isOnCalendar ? existing(new Date(text)) : undefined;
}

/** The year 1, as the database has no year 0. */
const FIRST = -62_135_596_800_000;
/** The year 9999, in whole seconds: a comparison may go a millisecond further, and years have four digits. */
const LAST = 253_402_300_799_000;

function existing(time: Date): Date | undefined {
  const at = time.getTime();
  return Number.isNaN(at) || at < FIRST || at > LAST ? undefined : time;
}
