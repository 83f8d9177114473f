/** The little of DER (ITU-T X.690) that a certificate needs: tag, length, contents. */
export type Der = Uint8Array;

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

const CONTEXT = 0x80;
const CONSTRUCTED = 0x20;

export const sequence = (...items: readonly Der[]): Der => element(TAG.sequence, Buffer.concat(items));
export const set = (...items: readonly Der[]): Der => element(TAG.set, Buffer.concat(items));
export const boolean = (value: boolean): Der => element(TAG.boolean, Uint8Array.of(value ? 0xff : 0));
export const octetString = (contents: Uint8Array): Der => element(TAG.octetString, contents);
export const utf8String = (text: string): Der => element(TAG.utf8String, Buffer.from(text, "utf8"));

export const bitString = (contents: Uint8Array, unusedBits = 0): Der =>
  element(TAG.bitString, Buffer.concat([Uint8Array.of(unusedBits), contents]));

/** `[n] EXPLICIT`: wraps a whole element. */
export const explicit = (number: number, item: Der): Der => element(CONTEXT | CONSTRUCTED | number, item);

/** `[n] IMPLICIT` of a primitive type: replaces its tag. */
export const implicit = (number: number, contents: Uint8Array): Der => element(CONTEXT | number, contents);

/** A positive integer from its big-endian bytes. */
export function integer(bytes: Uint8Array): Der {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start += 1;
  const shortest = bytes.subarray(start);
  // The top bit is the sign; a positive number that has it set needs a zero in front.
  const signed = ((shortest[0] ?? 0) & 0x80) !== 0 ? Buffer.concat([Uint8Array.of(0), shortest]) : shortest;
  return element(TAG.integer, signed.length === 0 ? Uint8Array.of(0) : signed);
}

export function objectIdentifier(dotted: string): Der {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return element(TAG.objectIdentifier, Uint8Array.from([first * 40 + second, ...rest].flatMap(base128)));
}

/** RFC 5280: two-digit years up to 2049, four digits from 2050 on. */
export function time(at: Date): Der {
  const digits = at
    .toISOString()
    .replace(/\.\d+Z$/, "Z")
    .replace(/[-:T]/g, "");
  const late = at.getUTCFullYear() >= 2050;
  return element(late ? TAG.generalizedTime : TAG.utcTime, Buffer.from(late ? digits : digits.slice(2), "ascii"));
}

function element(tag: number, contents: Uint8Array): Der {
  return Buffer.concat([Uint8Array.of(tag), lengthOf(contents.length), contents]);
}

function lengthOf(length: number): Uint8Array {
  if (length < 0x80) return Uint8Array.of(length);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Uint8Array.from([0x80 | bytes.length, ...bytes]);
}

function base128(value: number): number[] {
  const groups = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) groups.unshift((rest % 128) | 0x80);
  return groups;
}
