/** The wire format of protocol buffers, as far as the rack manager's messages use it: varints, and what has a length. */

/** How a field is written: by its number, as what, and whether there may be several of it. */
export interface Field {
  readonly no: number;
  readonly as: "text" | "number" | "flag" | Shape;
  /** list: repeated. Otherwise a map, with keys of this kind. */
  readonly many?: "list" | "by_number" | "by_text";
}
export type Shape = { readonly [name: string]: Field };
export type Message = { readonly [name: string]: unknown };

const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(Math.trunc(value)));
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest === 0n ? low : low | 0x80);
  } while (rest !== 0n);
  return Buffer.from(bytes);
}

const withLength = (no: number, content: Buffer): Buffer =>
  Buffer.concat([varint((no << 3) | LENGTH), varint(content.length), content]);

function one({ no, as }: Pick<Field, "no" | "as">, value: unknown): Buffer {
  if (as === "text") return withLength(no, Buffer.from(String(value), "utf8"));
  if (as === "number" || as === "flag") return Buffer.concat([varint((no << 3) | VARINT), varint(Number(value))]);
  return withLength(no, encode(as, value as Message));
}

/** What is undefined is left out, as is what the format leaves out: there a missing number is zero, and missing text is empty. */
export function encode(shape: Shape, message: Message): Buffer {
  return Buffer.concat(
    Object.entries(shape).flatMap(([name, field]) => {
      const value = message[name];
      if (value === undefined) return [];
      if (field.many === undefined) return [one(field, value)];
      if (field.many === "list") return (value as readonly unknown[]).map((each) => one(field, each));
      const key: Field = { no: 1, as: field.many === "by_number" ? "number" : "text" };
      return [...(value as ReadonlyMap<unknown, unknown>)].map(([at, each]) =>
        withLength(field.no, Buffer.concat([one(key, at), one({ no: 2, as: field.as }, each)])),
      );
    }),
  );
}

/** Fields that the shape does not know are skipped. @throws Error for bytes that are no message */
export function decode(shape: Shape, bytes: Buffer): Message {
  const byNumber = new Map(Object.entries(shape).map(([name, field]) => [field.no, { name, field }]));
  const message: Record<string, unknown> = {};
  for (const { no, content } of fieldsIn(bytes)) {
    const { name = "", field } = byNumber.get(no) ?? {};
    if (field === undefined) continue;
    if (field.many === undefined) message[name] = readValue(field.as, content);
    else addTo(message, name, field, content);
  }
  return message;
}

/** In place: an answer may have as many entries as fit into it. */
function addTo(message: Record<string, unknown>, name: string, field: Field, content: number | Buffer): void {
  if (field.many === "list") {
    message[name] ??= [];
    (message[name] as unknown[]).push(readValue(field.as, content));
  } else if (typeof content !== "number") {
    message[name] ??= new Map();
    (message[name] as Map<unknown, unknown>).set(...entryOf(field, content));
  }
}

function entryOf({ as, many }: Field, content: Buffer): readonly [unknown, unknown] {
  const key: Field = { no: 1, as: many === "by_number" ? "number" : "text" };
  const { key: at, value } = decode({ key, value: { no: 2, as } }, content);
  return [at ?? (many === "by_number" ? 0 : ""), value ?? {}];
}

function readValue(as: Field["as"], content: number | Buffer): unknown {
  if (as === "number") return typeof content === "number" ? content : 0;
  if (as === "flag") return content === 1;
  if (typeof content === "number") return as === "text" ? "" : {};
  return as === "text" ? content.toString("utf8") : decode(as, content);
}

function* fieldsIn(bytes: Buffer): Iterable<{ readonly no: number; readonly content: number | Buffer }> {
  let at = 0;
  const next = (): number => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error("the message ends in the middle of a number");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return Number(BigInt.asIntN(64, value));
    }
    throw new Error("a number is longer than any can be");
  };
  const take = (length: number): Buffer => {
    if (length < 0 || at + length > bytes.length) throw new Error("the message ends in the middle of a field");
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = next();
    const [no, type] = [tag >>> 3, tag & 7];
    if (type === VARINT) yield { no, content: next() };
    else if (type === LENGTH) yield { no, content: take(next()) };
    else if (type === FIXED64) take(8);
    else if (type === FIXED32) take(4);
    else throw new Error(`a field is written in a way (${type}) that no message has`);
  }
}
