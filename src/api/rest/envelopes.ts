import { z } from "zod";
import { isPrintable } from "../../kernel/printable.ts";

/** `{success, data, message}`, as every object of this contract travels. */
export const objectOf = (schema: z.ZodType) =>
  z.object({ success: z.literal(true), data: schema, message: z.string().nullable() });
export const listOf = (schema: z.ZodType) =>
  z.object({ success: z.literal(true), data: z.array(schema), total: z.int().min(0) });
/** A list that can be paged by its place: the token is there while more rows follow. */
export const pagedListOf = (schema: z.ZodType) => listOf(schema).extend({ next_page_token: z.string().optional() });
/** Histories and events came later, and without the flag. What retention removed is told where it has removed anything. */
export const historyPageOf = (schema: z.ZodType) =>
  z.object({
    data: z.array(schema),
    total: z.int().min(0),
    removed_entries: z.int().min(1).optional(),
    removed_until: z.iso.datetime().optional(),
  });

export const one = (data: unknown, message: string | null = null) => ({ success: true, data, message });
export const many = (data: readonly unknown[], total: number) => ({ success: true, data, total });

/** `total` counts what is kept. */
export const historyPage = (
  data: readonly unknown[],
  { total, removal }: { readonly total: number; readonly removal: { entries: number; until: Date } | undefined },
) => ({
  data,
  total,
  ...(removal && { removed_entries: removal.entries, removed_until: removal.until.toISOString() }),
});

/** Text that fits into a column and onto a screen. */
export const shortText = z.string().max(255);
/** What people write is shown to people: without control, invisible and direction characters. */
export const printable = (most: number) =>
  z.string().max(most).refine(isPrintable, "must be printable: without control, invisible or direction characters");
export const timestamp = z.iso.datetime();

const MOST = 1_000;
export const manyOf = <T>(
  { items, totalSize, nextPageToken }: { items: readonly T[]; totalSize: number | null; nextPageToken: string },
  json: (item: T) => unknown,
) => ({
  ...many(items.map(json), totalSize ?? 0),
  ...(nextPageToken !== "" && { next_page_token: nextPageToken }),
});

/** For routes that do not page in the specification: everything that fits, unless fewer are asked for. */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(MOST).default(MOST),
  offset: z.coerce.number().int().min(0).max(10_000_000).default(0),
};

/** A page of what is all in hand. */
export const cut = <T>(
  all: readonly T[],
  { limit, offset }: { readonly limit: number; readonly offset: number },
): T[] => all.slice(offset, offset + limit);
