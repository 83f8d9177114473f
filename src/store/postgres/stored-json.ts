import { isJsonObject } from "../../kernel/lifecycle.ts";

/**
 * Reads JSON that we wrote ourselves. What is in a row is checked, but not by a schema library: that takes many times as long, and
 * machines are read at every pass and by the thousand in lists.
 */
export type Check<T> = (value: unknown) => value is T;

export const isText: Check<string> = (value) => typeof value === "string";
export const isTime: Check<string> = (value): value is string => isText(value) && !Number.isNaN(Date.parse(value));
export const isNumber: Check<number> = (value) => typeof value === "number";
export const isFlag: Check<boolean> = (value) => typeof value === "boolean";

export const orNull =
  <T>(check: Check<T>): Check<T | null> =>
  (value): value is T | null =>
    value === null || check(value);

export const listOf =
  <T>(check: Check<T>): Check<readonly T[]> =>
  (value): value is readonly T[] =>
    Array.isArray(value) && value.every(check);

export const mapOf =
  <T>(check: Check<T>): Check<Readonly<Record<string, T>>> =>
  (value): value is Readonly<Record<string, T>> =>
    isJsonObject(value) && Object.values(value).every(check);

export const oneOf = <T extends string>(words: readonly T[]): Check<T> => {
  const known: ReadonlySet<unknown> = new Set(words);
  return (value): value is T => known.has(value);
};

export const shapeOf = <T extends object>(checks: { readonly [K in keyof T]: Check<T[K]> }): Check<T> => {
  const fields = Object.entries(checks) as [string, Check<unknown>][];
  return (value): value is T => isJsonObject(value) && fields.every(([name, check]) => check(value[name]));
};

/** For a field that has always been there. */
export const REQUIRED = undefined as never;

/** A reader of objects whose fields have a value also where they are absent, since they were written before there was such a field. */
export function readerOf<T extends object>(
  fields: {
    readonly [K in keyof T]: readonly [check: Check<T[K]>, whenAbsent: T[K]];
  },
): (stored: unknown) => T {
  const entries = Object.entries(fields) as [string, readonly [Check<unknown>, unknown]][];
  return (stored) => {
    if (!isJsonObject(stored)) throw new TypeError(`an object is wanted, not ${briefly(stored)}`);
    const read: Record<string, unknown> = {};
    for (const [name, [check, whenAbsent]] of entries) {
      const value = stored[name] === undefined ? whenAbsent : stored[name];
      if (!check(value)) throw new TypeError(`${name} cannot be ${briefly(value)}`);
      read[name] = value;
    }
    return read as T;
  };
}

const briefly = (value: unknown): string => (JSON.stringify(value) ?? String(value)).slice(0, 80);
