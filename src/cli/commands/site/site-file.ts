import { readFileSync } from "node:fs";
import { type DescMessage, fromJson, type JsonValue, type MessageShape } from "@bufbuild/protobuf";
import { UsageError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";

export type Entry = { readonly [field: string]: JsonValue };

/** The lists that a file can have. */
const SECTIONS = [
  "rack_profiles",
  "expected_racks",
  "expected_switches",
  "expected_power_shelves",
  "machines",
] as const;
export type SectionName = (typeof SECTIONS)[number];
export type SiteFile = { readonly [section in SectionName]?: readonly Entry[] };

export async function readSiteFile(session: Session, file: string): Promise<SiteFile> {
  const parsed = await parseText(file === "-" ? await session.terminal.stdin.readAll() : readText(file));
  if (!isEntry(parsed)) throw new UsageError(`--file: an object with lists is wanted: ${SECTIONS.join(", ")}`);
  const unknown = Object.keys(parsed).find((name) => !SECTIONS.some((section) => section === name));
  if (unknown !== undefined)
    throw new UsageError(`--file: ${JSON.stringify(unknown)} is not a list of a site; known: ${SECTIONS.join(", ")}`);
  return Object.fromEntries(
    Object.entries(parsed).map(([name, entries]) => {
      if (!Array.isArray(entries) || !entries.every(isEntry))
        throw new UsageError(`--file: ${name} must be a list of objects`);
      return [name, entries];
    }),
  ) as SiteFile;
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    throw new UsageError(`--file: ${path} cannot be read (${code})`);
  }
}

/** Neither parser's message is repeated: it may quote a password. */
async function parseText(text: string): Promise<unknown> {
  const { parseDocument } = await import("yaml");
  const document = parseDocument(text);
  const [first] = document.errors;
  if (!first) return document.toJS();
  const line = first.linePos?.[0].line;
  throw new UsageError(`--file: neither JSON nor YAML${line === undefined ? "" : `: line ${line}`} (${first.code})`);
}

const isEntry = (value: unknown): value is Entry =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Words of the list commands, as the contract spells them, and what only the server says. */
export interface Spelling {
  readonly renamed: { readonly [word: string]: string };
  readonly reported: readonly string[];
  /** Fields that are messages with one text in them, and the name of that text. */
  readonly wrapped: { readonly [field: string]: string };
}

/** An entry as the contract has it: names, descriptions and labels may stand at its top, and ids may be texts. */
export function normalise(entry: Entry, { renamed, reported, wrapped }: Spelling): Entry {
  const whole: { [field: string]: JsonValue } = {};
  for (const [word, value] of Object.entries(entry)) {
    const field = renamed[word] ?? word;
    if (reported.includes(word)) continue;
    const inner = wrapped[field];
    if (inner !== undefined && typeof value === "string") {
      if (value !== "") whole[field] = { [inner]: value };
    } else whole[field] = value;
  }
  const { name, description, labels, ...rest } = whole;
  const flat = Object.entries({ name, description, labels }).filter(([, value]) => value !== undefined);
  if (flat.length === 0) return rest;
  const metadata: { [field: string]: JsonValue } = {
    ...(isEntry(rest.metadata) ? rest.metadata : {}),
    ...(Object.fromEntries(flat) as Entry),
  };
  if (isEntry(metadata.labels))
    metadata.labels = Object.entries(metadata.labels).map(([key, value]) => ({ key, value }));
  return { ...rest, metadata };
}

/** @param where Names the entry in errors. The decoder quotes what it cannot read, which must not be a password. */
export function decode<D extends DescMessage>(schema: D, entry: Entry, where: string): MessageShape<D> {
  requireTexts(Object.fromEntries(Object.entries(entry).filter(([field]) => /password/i.test(field))), where);
  try {
    return fromJson(schema, entry as JsonValue);
  } catch (error) {
    throw new UsageError(`--file: ${where}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** What it finds is named and not quoted. */
export function requireTexts(entry: Entry, where: string): void {
  const odd = Object.entries(entry).find(([, value]) => typeof value !== "string");
  if (odd) throw new UsageError(`--file: ${where}: ${odd[0]} is not a text; put it in quotes`);
}
