import { UsageError } from "../client/errors.ts";

/** The shape of google.protobuf.Timestamp and Duration. */
interface SecondsAndNanos {
  readonly seconds: bigint;
  readonly nanos: number;
}

const milliseconds = (value: SecondsAndNanos): number => Number(value.seconds) * 1000 + value.nanos / 1e6;

export const toDate = (timestamp: SecondsAndNanos): Date => new Date(milliseconds(timestamp));
export const toMilliseconds = (duration: SecondsAndNanos): number => milliseconds(duration);

/** 2026-01-31T12:00:00.000Z, or nothing. */
export const isoTime = (timestamp: SecondsAndNanos | undefined): string =>
  timestamp ? toDate(timestamp).toISOString() : "";

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** "4m 10s", "1d 2h": two units at most. */
export function describeDuration(ms: number): string {
  if (ms < 1_000) return "0s";
  let rest = ms;
  const parts: string[] = [];
  for (const [name, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count}${name}`);
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

/** How long ago; "0s" for a time in the future, since clocks differ. */
export const age = (timestamp: SecondsAndNanos | undefined, now: Date): string =>
  timestamp ? describeDuration(now.getTime() - toDate(timestamp).getTime()) : "";

/** Local and to the second, as people compare it with their watch: 2026-01-31 12:00:00. */
export function clockTime(timestamp: SecondsAndNanos | undefined): string {
  if (!timestamp) return "";
  const date = toDate(timestamp);
  const two = (n: number) => String(n).padStart(2, "0");
  return (
    `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
    `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
  );
}

/** "90s", "5m", "2h", "30d" in milliseconds. */
export function parseDuration(text: string, field: string): number {
  const match = /^(\d{1,9})(ms|[smhd])$/.exec(text);
  const size = match?.[2] === "ms" ? 1 : UNITS.find(([name]) => name === match?.[2])?.[1];
  if (!match || size === undefined) {
    throw new UsageError(`${field}: ${JSON.stringify(text)} is not a duration (like 90s, 5m, 2h or 30d)`);
  }
  return Number(match[1]) * size;
}

/** How long ago that was. */
export const ageOf = (then: Date, now: Date): string => describeDuration(now.getTime() - then.getTime());
