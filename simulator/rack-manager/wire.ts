/** What a field holds. A message is the table of its own fields. */
export type FieldKind = "string" | "int" | "bool" | Fields;
/** Number, kind, and whether it comes once, any number of times, or by keys (which are of the second kind). */
export type Field = readonly [no: number, kind: FieldKind, how?: "repeated" | { readonly keys: "string" | "int" }];
export type Fields = { readonly [name: string]: Field };
export type Message = { readonly [name: string]: unknown };

/** Of protocol buffers: a number, eight or four bytes, or bytes with their length in front. */
const VARINT = 0;
const EIGHT_BYTES = 1;
const BYTES = 2;
const FOUR_BYTES = 5;

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes);
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.take(1)[0] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
    throw new Error("a number is too long");
  }

  take(length: number): Buffer {
    if (length < 0 || this.#at + length > this.#bytes.length) throw new Error("the message is cut off");
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  bytes(): Buffer {
    return this.take(Number(this.varint()));
  }

  skip(wireType: number): void {
    if (wireType === VARINT) this.varint();
    else if (wireType === BYTES) this.bytes();
    else if (wireType === EIGHT_BYTES) this.take(8);
    else if (wireType === FOUR_BYTES) this.take(4);
    else throw new Error(`there is no wire type ${wireType}`);
  }
}

/** Reads what the table knows and passes over the rest, as protocol buffers ask. */
export function decode(fields: Fields, bytes: Uint8Array): Message {
  const byNumber = new Map(Object.entries(fields).map(([name, field]) => [field[0], { name, field }]));
  const reader = new Reader(bytes);
  const message: Record<string, unknown> = {};
  while (!reader.isAtEnd) {
    const tag = Number(reader.varint());
    const wireType = tag & 7;
    const found = byNumber.get(tag >>> 3);
    if (found === undefined) reader.skip(wireType);
    else message[found.name] = joined(message[found.name], found.field, reader, wireType);
  }
  return message;
}

/** What a field holds with one more occurrence of it. */
function joined(before: unknown, [, kind, how]: Field, reader: Reader, wireType: number): unknown {
  if (how === undefined) return read(kind, reader, wireType);
  if (how === "repeated") return [...((before as unknown[] | undefined) ?? []), read(kind, reader, wireType)];
  const { key, value } = decode({ key: [1, how.keys], value: [2, kind] }, reader.bytes());
  return { ...(before as object | undefined), [String(key ?? (how.keys === "int" ? 0 : ""))]: value };
}

function read(kind: FieldKind, reader: Reader, wireType: number): unknown {
  if (typeof kind === "object") return decode(kind, reader.bytes());
  // Whether a topology is a word or a number is nowhere said: both are taken.
  if (kind === "string") return wireType === VARINT ? String(reader.varint()) : reader.bytes().toString("utf8");
  const number = reader.varint();
  return kind === "bool" ? number !== 0n : Number(number);
}

export function encode(fields: Fields, message: Message): Buffer {
  const chunks: Buffer[] = [];
  for (const [name, [no, kind, how]] of Object.entries(fields)) {
    const value = message[name];
    if (value === undefined) continue;
    if (how === undefined) chunks.push(written(no, kind, value));
    else if (how === "repeated") for (const each of value as unknown[]) chunks.push(written(no, kind, each));
    else
      for (const [key, each] of Object.entries(value as object))
        chunks.push(written(no, { key: [1, how.keys], value: [2, kind] }, { key, value: each }));
  }
  return Buffer.concat(chunks);
}

function written(no: number, kind: FieldKind, value: unknown): Buffer {
  if (kind === "int" || kind === "bool") return Buffer.concat([varint(no * 8 + VARINT), varint(Number(value))]);
  const bytes = typeof kind === "object" ? encode(kind, value as Message) : Buffer.from(String(value), "utf8");
  return Buffer.concat([varint(no * 8 + BYTES), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return Buffer.from([...bytes, Number(rest)]);
}
