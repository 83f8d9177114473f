import { type DescMessage, fromJson, type JsonValue, type MessageShape } from "@bufbuild/protobuf";
import { readTextFile } from "../discover-server.ts";
import { UsageError } from "../errors.ts";
import type { Session } from "../session.ts";

/** A message of the contract from a file of YAML or JSON, spelled as `-o yaml` prints it; `-` is standard input. */
export async function readDocument<D extends DescMessage>(
  session: Session,
  file: string,
  schema: D,
): Promise<MessageShape<D>> {
  const value = await readPlainDocument(session, file);
  try {
    return fromJson(schema, withoutNulls(value));
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
    const line = fault.linePos?.[0].line;
    throw new UsageError(`--file: neither YAML nor JSON${line === undefined ? "" : `: line ${line}`} (${fault.code})`);
  }
  if (document === undefined || documents.length !== 1) throw new UsageError("--file: one document is wanted");
  return document.toJS() as JsonValue;
}

/** `-o yaml` shows what is absent as null; of a step's kinds, all but one are. */
function withoutNulls(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== "object" || value === null) return value;
  const given = Object.entries(value).filter(([, inner]) => inner !== null);
  return Object.fromEntries(given.map(([name, inner]) => [name, withoutNulls(inner)]));
}
