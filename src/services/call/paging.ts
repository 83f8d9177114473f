import { createHash } from "node:crypto";
import { z } from "zod";
import { AppError } from "../../kernel/errors.ts";
import type { Signer } from "../../store/access/secrets.ts";

const DEFAULT_PAGE_SIZE = 100;
const LARGEST_PAGE_SIZE = 1_000;

/** 0 takes the default. */
export function checkPageSize(size: number): number {
  if (Number.isInteger(size) && size >= 0 && size <= LARGEST_PAGE_SIZE) return size === 0 ? DEFAULT_PAGE_SIZE : size;
  throw new AppError("invalid_argument", `page_size: must be between 0 and ${LARGEST_PAGE_SIZE}, got ${size}`, {
    field: "page_size",
  });
}

/** Of anything but the page itself: the same query gives the same word. */
const fingerprint = (query: object): string =>
  createHash("sha256").update(JSON.stringify(query)).digest("base64url").slice(0, 16);

/** Longer than any key that we page by. */
const LONGEST_WORD = 1_024;
const LONGEST_TOKEN = 8_192;
/** Their words go into queries: NUL is what the database cannot take. */
const word = z
  .string()
  .max(LONGEST_WORD)
  .refine((text) => !text.includes("\0"));
const tokenSchema = z.object({ query: z.string(), after: z.array(word.nullable()) });

const PURPOSE = "page token";

/**
 * Where a page ends, for the caller to hand back. It is signed, since its words go into queries, and carries a fingerprint of
 * its query, so that a token of another query is refused instead of silently skipping rows.
 */
export function pageTokenOf(signer: Signer, query: object, after: readonly (string | null)[]): string {
  const content = Buffer.from(JSON.stringify({ query: fingerprint(query), after })).toString("base64url");
  return `${content}.${signer.sign(PURPOSE, content)}`;
}

/**
 * The key after which the page begins, as many words as it was made of; undefined for the first page. `isKey` says what else
 * must hold of the words.
 */
export function parsePageToken(
  signer: Signer,
  token: string,
  query: object,
  words: number,
  isKey: (key: readonly string[]) => boolean = () => true,
): readonly string[] | undefined {
  const place = parsePlace(signer, token, query, words);
  if (place === undefined) return undefined;
  const isText = (each: string | null): each is string => each !== null;
  if (!place.every(isText) || !isKey(place)) throw refuse(FOREIGN);
  return place;
}

const FOREIGN = "is not a page_token of this server";
const refuse = (why: string): AppError =>
  new AppError("invalid_argument", `page_token: ${why}`, {
    field: "page_token",
    next: "start again with an empty page_token",
  });

/** The same for lists that are sorted by what may be missing: null stands for it. */
export function parsePlace(
  signer: Signer,
  token: string,
  query: object,
  words: number,
): readonly (string | null)[] | undefined {
  if (token === "") return undefined;
  if (token.length > LONGEST_TOKEN) throw refuse(FOREIGN);
  const [content = "", signature = ""] = token.split(".");
  if (!signer.isSigned(PURPOSE, content, signature) || token !== `${content}.${signature}`) throw refuse(FOREIGN);
  const parsed = tokenSchema.safeParse(parseJson(Buffer.from(content, "base64url").toString()));
  if (!parsed.success) throw refuse(FOREIGN);
  if (parsed.data.query !== fingerprint(query))
    throw refuse("belongs to a call with another filter, another order_by or other arguments");
  if (parsed.data.after.length !== words) throw refuse(FOREIGN);
  return parsed.data.after;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Empty on the last page. */
  readonly nextPageToken: string;
}

/** Cuts the one row too many that tells whether there is another page. */
export function cutPage<T>(
  signer: Signer,
  rows: readonly T[],
  size: number,
  query: object,
  keyOf: (row: T) => readonly (string | null)[],
): Page<T> {
  const items = rows.slice(0, size);
  const last = items.at(-1);
  return {
    items,
    nextPageToken: rows.length > size && last !== undefined ? pageTokenOf(signer, query, keyOf(last)) : "",
  };
}
