import type { Command } from "commander";
import { UsageError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { printLine } from "../../terminal/printing.ts";

/** What every list takes, in the same words. */
export interface ListOptions {
  readonly filter?: string;
  readonly orderBy?: string;
  readonly limit?: string;
  readonly total?: boolean;
}

/** @param examples A filter and an order that make sense here; a limit where all would be too many. */
export const addListOptions = (
  command: Command,
  examples: { readonly filter: string; readonly order: string; readonly limit?: string },
): Command =>
  command
    .option("--filter <filter>", `such as ${examples.filter}`)
    .option("--order-by <fields>", `such as ${examples.order}`)
    .option("--limit <number>", "print at most this many", examples.limit)
    .option("--total", "also print the total, on standard error");

/** All of them must hold. A choice among them stands in parentheses: AND binds closer than OR. */
export function joinFilters(...parts: readonly (string | undefined)[]): string {
  const given = parts.filter((part): part is string => part !== undefined && part.trim() !== "");
  return given.length < 2
    ? given.join("")
    : given.map((part) => (/\bor\b/i.test(part) ? `(${part})` : part)).join(" AND ");
}

/** A value as a filter takes it, whatever is in it. */
export const valueText = (value: string): string =>
  /^[\w.:-]+$/.test(value) && !/^(and|in)$/i.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;

const MOST = 1_000_000;

/** Undefined: no limit. */
export function limitOf({ limit }: Pick<ListOptions, "limit">, most = MOST): number | undefined {
  if (limit === undefined) return undefined;
  const count = Number(limit);
  if (Number.isInteger(count) && count >= 1 && count <= most) return count;
  throw new UsageError(`--limit: a whole number from 1 to ${most}`);
}

/** Beside the output, which stays what programs read. */
export function printTotal({ terminal }: Session, shown: number, total: number | undefined): void {
  if (total !== undefined) printLine(terminal.stderr, `${shown} of ${total}`);
}
