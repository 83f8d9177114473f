import type { IncomingMessage } from "node:http";
import { readText, TooLarge } from "./read-text.ts";

/** How a JSON list is read whose text would be too much to hold. */
export interface ListReading {
  /** What is kept of an element; undefined: nothing. */
  readonly keep: (element: unknown) => unknown;
  /** In bytes, of one element. */
  readonly largestElement: number;
  /** How many are kept. */
  readonly most: number;
}

/** The answer is no JSON list. */
export class NotAList extends Error {}

/** What is kept of a list, element by element as they come: at no time is more than one of them there as text. */
export async function readList(
  response: IncomingMessage,
  { keep, largestElement, most, largest }: ListReading & { readonly largest: number },
): Promise<readonly unknown[]> {
  const kept: unknown[] = [];
  let size = 0;
  const splitter = new ElementSplitter(largestElement, (element) => {
    const value = keep(element);
    if (value === undefined) return;
    if (kept.length === most) throw new TooLarge(`the list has more than ${most} elements`);
    kept.push(value);
  });
  for await (const chunk of response) {
    size += (chunk as Buffer).length;
    if (size > largest) throw new TooLarge(`the answer is larger than ${largest} bytes`);
    splitter.push(chunk as Buffer);
  }
  splitter.end();
  return kept;
}

/** A list where it is one, and the text of any other answer. */
export async function readTextOrList(
  response: IncomingMessage,
  { list, largest }: { readonly list: ListReading | undefined; readonly largest: number },
): Promise<{ readonly text: string; readonly list?: readonly unknown[] }> {
  if (list === undefined) return { text: await readText(response, largest) };
  if (response.statusCode !== 200) return { text: await readText(response, list.largestElement) };
  return { text: "", list: await readList(response, { ...list, largest }) };
}

const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c];
const [LIST, END_OF_LIST, OBJECT, END_OF_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];
const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

/** Cuts the bytes of a JSON list into its elements. All that structure is made of is ASCII, so that no character is ever cut wrongly. */
class ElementSplitter {
  readonly #largest: number;
  readonly #found: (element: unknown) => void;
  #isBegun = false;
  #isEnded = false;
  #isInString = false;
  #isEscaped = false;
  #depth = 0;
  /** What earlier chunks hold of the present element. */
  #parts: Buffer[] = [];
  #size = 0;
  /** Where the present element begins in the present chunk; -1: there is none. */
  #start = -1;

  constructor(largest: number, found: (element: unknown) => void) {
    this.#largest = largest;
    this.#found = found;
  }

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; at += 1) this.#take(chunk[at] as number, at, chunk);
    if (this.#start === -1) return;
    this.#add(chunk.subarray(this.#start));
    this.#start = 0;
  }

  end(): void {
    if (!this.#isEnded) throw new NotAList(this.#isBegun ? "the list is cut off" : "it is empty");
  }

  #take(byte: number, at: number, chunk: Buffer): void {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) this.#isInString = false;
      return;
    }
    if (isSpace(byte)) return;
    if (!this.#isBegun) {
      if (byte !== LIST) throw new NotAList("it begins otherwise");
      this.#isBegun = true;
      return;
    }
    if (this.#isEnded) throw new NotAList("it goes on behind its end");
    const isOutside = this.#depth === 0;
    if (isOutside && (byte === COMMA || byte === END_OF_LIST)) {
      this.#finish(at, chunk);
      this.#isEnded = byte === END_OF_LIST;
      return;
    }
    if (this.#start === -1) this.#start = at;
    if (byte === QUOTE) this.#isInString = true;
    else if (byte === LIST || byte === OBJECT) this.#depth += 1;
    else if (byte === END_OF_LIST || byte === END_OF_OBJECT) this.#depth -= 1;
  }

  #add(part: Buffer): void {
    this.#size += part.length;
    if (this.#size > this.#largest) throw new TooLarge(`an element is larger than ${this.#largest} bytes`);
    this.#parts.push(part);
  }

  #finish(at: number, chunk: Buffer): void {
    if (this.#start === -1) return;
    this.#add(chunk.subarray(this.#start, at));
    const text = Buffer.concat(this.#parts).toString("utf8");
    this.#parts = [];
    this.#size = 0;
    this.#start = -1;
    let element: unknown;
    try {
      element = JSON.parse(text);
    } catch {
      throw new NotAList("an element is no JSON");
    }
    this.#found(element);
  }
}
