import type { Timestamp } from "@bufbuild/protobuf/wkt";

export const toMillis = (at: Timestamp | undefined): number | undefined =>
  at === undefined ? undefined : Number(at.seconds) * 1_000 + at.nanos / 1_000_000;

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Two units at the most, as people say it: `40 s`, `12 min`, `3 h 20 min`, `5 d`. */
export function spanText(ms: number): string {
  const span = Math.max(0, ms);
  if (span < 1_000) return `${(span / 1_000).toFixed(1)} s`;
  if (span < 10_000 && span % 1_000 >= 100) return `${(Math.floor(span / 100) / 10).toFixed(1)} s`;
  if (span < 2 * MINUTE) return `${Math.floor(span / 1_000)} s`;
  if (span < HOUR) return `${Math.floor(span / MINUTE)} min`;
  if (span < DAY) return twoUnits(Math.floor(span / HOUR), "h", Math.floor((span % HOUR) / MINUTE), "min");
  return twoUnits(Math.floor(span / DAY), "d", Math.floor((span % DAY) / HOUR), "h");
}

const twoUnits = (large: number, largeName: string, small: number, smallName: string): string =>
  small === 0 || large >= 10 ? `${large} ${largeName}` : `${large} ${largeName} ${small} ${smallName}`;

const exact = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });

/** `2026-11-19 03:12:44`, by the reader's own time zone. */
export const exactTime = (at: number): string => exact.format(at);
