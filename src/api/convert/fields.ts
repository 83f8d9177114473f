import {
  durationFromMs,
  type Timestamp,
  timestampFromDate,
  type Duration as WireDuration,
} from "@bufbuild/protobuf/wkt";
import { AppError } from "../../kernel/errors.ts";
import { type Duration, milliseconds } from "../../kernel/time/duration.ts";

/** A part of the request without which it means nothing. */
export function required<T>(value: T | undefined, field: string): T {
  if (value !== undefined) return value;
  throw new AppError("invalid_argument", `${field}: is required`, { field });
}

/** Proto's way to leave a text away. */
export const nonEmpty = (text: string): string | undefined => (text === "" ? undefined : text);

/** The word for a number of an enum; numbers that the contract does not know are refused, never taken for another. */
export function wordFor<T>(words: Readonly<Record<number, T>>, number: number, field: string): T {
  const word = words[number];
  if (word !== undefined) return word;
  const known = Object.keys(words).join(", ");
  throw new AppError("invalid_argument", `${field}: ${number} is not a value of this enum (known: ${known})`, {
    field,
  });
}

export const timestampOf = (date: Date | null): Timestamp | undefined =>
  date === null ? undefined : timestampFromDate(date);

/** To the millisecond: the wire has no room for fractions of a nanosecond, as calculations have them. */
export const durationOf = (duration: Duration | null): WireDuration | undefined =>
  duration === null ? undefined : durationFromMs(Math.round(duration));

const FIRST_SECOND = -62_135_596_800n; // 0001-01-01
const LAST_SECOND = 253_402_300_799n; // 9999-12-31

export function dateFrom(timestamp: Timestamp | undefined, field: string): Date | null {
  if (timestamp === undefined) return null;
  const { seconds, nanos } = timestamp;
  if (seconds < FIRST_SECOND || seconds > LAST_SECOND || nanos < 0 || nanos > 999_999_999) {
    throw new AppError("invalid_argument", `${field}: is not a time between the years 1 and 9999`, { field });
  }
  return new Date(Number(seconds) * 1_000 + Math.floor(nanos / 1e6));
}

/** A positive one of whole milliseconds; absent: null. */
export function durationFrom(duration: WireDuration | undefined, field: string): Duration | null {
  if (duration === undefined) return null;
  const ms = Number(duration.seconds) * 1_000 + Math.ceil(duration.nanos / 1e6);
  if (ms > 0 && Number.isSafeInteger(ms)) return milliseconds(ms);
  throw new AppError("invalid_argument", `${field}: must be greater than zero`, { field });
}

const LARGEST_INT32 = 2 ** 31 - 1;

/** Readings of devices are any number; the contract has whole ones of 32 bits. */
export const int32Of = (value: number | null): number | undefined =>
  value === null ? undefined : Math.max(-LARGEST_INT32, Math.min(LARGEST_INT32, Math.round(value)));
