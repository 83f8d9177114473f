import { type DescMessage, fromJson, type JsonValue, type MessageShape } from "@bufbuild/protobuf";
import { readTextFile } from "../../client/discover-server.ts";
import { UsageError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { documentFault } from "./document-fault.ts";

/** A message of the contract from a file of YAML or JSON, spelled as `-o yaml` prints it; `-` is standard input. */
export async function readDocument<D extends DescMessage>(
  session: Session,
  file: string,
  schema: D,
): Promise<MessageShape<D>> {
  const value = withoutNulls(schema, await readPlainDocument(session, file));
  const fault = documentFault(schema, value);
  if (fault !== undefined) throw new UsageError(`--file: ${fault}`);
  try {
    return fromJson(schema, value);
  } catch (error) {
    throw new UsageError(`--file: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** The same as it is: whoever it is sent to says what is wrong with it. */
export async function readPlainDocument(session: Session, file: string): Promise<JsonValue> {
  const text = file === "-" ? await session.terminal.stdin.readAll() : readTextFile(file);
  if (text === undefined) throw new UsageError(`--file: ${file} does not exist`);
  const { parseAllDocuments } = await import("yaml");
  const documents = parseAllDocuments(text);
  const [document] = Array.isArray(documents) ? documents : [];
  const fault = document?.errors[0];
  if (fault) {
    const [begin] = fault.linePos ?? [];
    const where = begin === undefined ? "" : `line ${begin.line}, column ${begin.col}: `;
    throw new UsageError(`--file: neither YAML nor JSON: ${where}${saidOf(fault.message)}`);
  }
  if (document === undefined || documents.length !== 1) throw new UsageError("--file: one document is wanted");
  return document.toJS() as JsonValue;
}

/** The reader's own sentence, without the place, which stands before it, and the lines of the file that it quotes. */
const saidOf = (message: string): string =>
  (message.split("\n", 1)[0] ?? "")
    .replace(/ at line \d+, column \d+:?$/, "")
    .replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase());

/** `-o yaml` shows what is absent as null; of a step's kinds, all but one are. The only one that is there at all is meant. */
function withoutNulls(schema: DescMessage | undefined, value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map((each) => withoutNulls(schema, each));
  if (typeof value !== "object" || value === null) return value;
  const fieldOf = (key: string) => schema?.fields.find(({ name, jsonName }) => name === key || jsonName === key);
  const choices = Object.keys(value).filter((key) => fieldOf(key)?.oneof?.name === "kind");
  const given = Object.entries(value).flatMap(([key, inner]): [string, JsonValue][] => {
    if (inner === null) return choices.length === 1 && choices[0] === key ? [[key, {}]] : [];
    return [[key, withoutNulls(fieldOf(key)?.message, inner)]];
  });
  return Object.fromEntries(given);
}
