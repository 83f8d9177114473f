import { readFileSync } from "node:fs";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type ExpectedPowerShelfList, ExpectedPowerShelfListSchema } from "../../../../contract/forge/forge_pb.js";
import { UsageError } from "../../client/errors.ts";

/**
 * An expected inventory to upload, as JSON or YAML: a list, or an object with the list in `expected_power_shelves`.
 *
 * Entries are written as the contract has them, or as `expected-power-shelf list -o json` prints them, so that a site can be
 * listed, edited and put back.
 */
export async function parseExpectedFile(source: string, kind: "path" | "text"): Promise<ExpectedPowerShelfList> {
  const parsed = await parseText(kind === "path" ? readSource(source) : source);
  const entries = Array.isArray(parsed)
    ? parsed
    : isObject(parsed)
      ? (parsed.expected_power_shelves ?? parsed.expectedPowerShelves)
      : undefined;
  if (!Array.isArray(entries))
    throw new UsageError(
      "--file: a list of expected power shelves is wanted, or an object with it in expected_power_shelves",
    );
  const normalised = entries.map((entry, at) => {
    if (!isObject(entry)) throw new UsageError(`--file: entry ${at + 1} is not an object`);
    return normalise(entry);
  });
  const shelves = normalised.map((entry, at) => parseEntry(entry, at));
  return { $typeName: "forge.ExpectedPowerShelfList", expectedPowerShelves: shelves };
}

function readSource(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(
      `--file: ${path} cannot be read (${error instanceof Error && "code" in error ? String(error.code) : "unknown"})`,
    );
  }
}

/** JSON is YAML, too; but its own parser is quicker, and its messages are about JSON. Neither message repeats the text. */
async function parseText(text: string): Promise<unknown> {
  if (/^\s*[[{]/.test(text)) {
    try {
      return JSON.parse(text);
    } catch {
      // Flow-style YAML also begins like this.
    }
  }
  const { parseDocument } = await import("yaml");
  const document = parseDocument(text);
  const first = document.errors[0];
  if (first) {
    const line = first.linePos?.[0].line;
    throw new UsageError(`--file: neither JSON nor YAML${line === undefined ? "" : `: line ${line}`} (${first.code})`);
  }
  return document.toJS();
}

type JsonObject = { [key: string]: JsonValue };
const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The words of `list -o json` and of the command line, as the contract spells them. */
const RENAMED: { readonly [word: string]: string } = {
  bmc_mac: "bmc_mac_address",
  bmc_endpoint: "bmc_ip_address",
  serial: "shelf_serial_number",
  retain_credentials: "bmc_retain_credentials",
  id: "expected_power_shelf_id",
};
/** What the server works out by itself. */
const REPORTED = ["power_shelf_id", "explore_state", "explore_message", "explored_at", "next_explore_at"];

function normalise(entry: JsonObject): JsonObject {
  const { name, description, labels, ...rest } = entry;
  const whole: JsonObject = {};
  for (const [word, value] of Object.entries(rest)) if (!REPORTED.includes(word)) whole[RENAMED[word] ?? word] = value;
  if (typeof whole.rack_id === "string") whole.rack_id = whole.rack_id === "" ? null : { id: whole.rack_id };
  if (typeof whole.expected_power_shelf_id === "string")
    whole.expected_power_shelf_id = { value: whole.expected_power_shelf_id };
  const flat = Object.fromEntries(
    Object.entries({ name, description, labels }).filter(([, value]) => value !== undefined),
  ) as JsonObject;
  const metadata: JsonObject = { ...(isObject(whole.metadata) ? whole.metadata : {}), ...flat };
  if (isObject(metadata.labels))
    metadata.labels = Object.entries(metadata.labels).map(([key, value]) => ({ key, value }));
  if (Object.keys(metadata).length > 0) whole.metadata = metadata;
  return whole;
}

function parseEntry(entry: JsonObject, at: number) {
  try {
    const [parsed] = fromJson(ExpectedPowerShelfListSchema, { expected_power_shelves: [entry] }).expectedPowerShelves;
    if (parsed) return parsed;
  } catch (error) {
    throw new UsageError(`--file: entry ${at + 1}: ${describe(error, entry)}`);
  }
  throw new UsageError(`--file: entry ${at + 1} is empty`);
}

/** The decoder's messages may quote the value; a password must not come out that way. */
function describe(error: unknown, entry: JsonObject): string {
  const message = error instanceof Error ? error.message : String(error);
  const secret = entry.bmc_password ?? entry.bmcPassword;
  const quotesSecret =
    /password/i.test(message) || (secret !== undefined && secret !== "" && message.includes(String(secret)));
  return quotesSecret ? "bmc_password is not a text" : message;
}
