import { AppError } from "../errors.ts";

/** A value that needs no quotes: no blanks, and none of the marks that mean something here. */
const BARE = /[^\s=!(),"'\\]+/y;
/** The same for a field: it ends where an operator begins. */
const NAME = /[^\s=!<>~^(),"'\\]+/y;
const BLANKS = /\s*/y;

const refusal = (parameter: string, why: string): AppError =>
  new AppError("invalid_argument", `${parameter}: ${why}`, { field: parameter });

/** Walks over the text. Blanks before a mark or word do not matter; within `labels."key"` and quotes they do. */
export class QueryReader {
  readonly #text: string;
  readonly #parameter: string;
  #at = 0;

  /** `parameter` names the text in refusals, such as filter. */
  constructor(text: string, parameter: string, longest: number) {
    this.#text = text;
    this.#parameter = parameter;
    if (text.length > longest) throw refusal(parameter, `has ${text.length} characters; the limit is ${longest}`);
  }

  /** Where the next mark or word begins. */
  mark(): number {
    this.#skipBlanks();
    return this.#at;
  }

  #skipBlanks(): void {
    BLANKS.lastIndex = this.#at;
    this.#at += BLANKS.exec(this.#text)?.[0].length ?? 0;
  }

  atEnd(): boolean {
    this.#skipBlanks();
    return this.#at === this.#text.length;
  }

  take(mark: string): boolean {
    this.#skipBlanks();
    if (!this.#text.startsWith(mark, this.#at)) return false;
    this.#at += mark.length;
    return true;
  }

  takeBare(): string | undefined {
    return this.#takeWord(BARE);
  }

  takeName(): string | undefined {
    return this.#takeWord(NAME);
  }

  #takeWord(pattern: RegExp): string | undefined {
    this.#skipBlanks();
    pattern.lastIndex = this.#at;
    const word = pattern.exec(this.#text)?.[0];
    if (word === undefined) return undefined;
    this.#refuseUnstorable(word, this.#at);
    this.#at += word.length;
    return word;
  }

  takeKeyword(keyword: string): boolean {
    this.#skipBlanks();
    const start = this.#at;
    if (this.takeName()?.toUpperCase() === keyword) return true;
    this.#at = start;
    return false;
  }

  /** Only right here: no blanks are skipped. */
  takeQuoted(): string | undefined {
    const start = this.#at;
    const quote = this.#text[start];
    if (quote !== '"' && quote !== "'") return undefined;
    let value = "";
    for (let at = start + 1; at < this.#text.length; at += 1) {
      const character = this.#text[at];
      if (character === quote) {
        this.#refuseUnstorable(value, start);
        this.#at = at + 1;
        return value;
      }
      if (character === "\\") {
        at += 1;
        const escaped = this.#text[at];
        if (escaped !== "\\" && escaped !== '"' && escaped !== "'") throw this.expectedAt(at, '" or \\ after \\');
        value += escaped;
      } else value += character;
    }
    throw this.refuseAt(start, `the quote ${quote} is never closed`);
  }

  refuse(what: string): AppError {
    return this.refuseAt(this.#at, `${what} are allowed`);
  }

  refuseAt(at: number, why: string): AppError {
    return refusal(this.#parameter, `at position ${at + 1}: ${why}`);
  }

  expected(what: string): AppError {
    this.#skipBlanks();
    return this.expectedAt(this.#at, what);
  }

  /** `value` is what was found where it was read already, without its quotes. */
  expectedAt(at: number, what: string, value?: string): AppError {
    const rest = this.#text.slice(at).trimEnd();
    const word = value?.slice(0, 40) ?? /^[^\s=!(),"']{1,40}|^./u.exec(rest)?.[0] ?? "";
    const found = rest === "" ? "the end" : JSON.stringify(word);
    return this.refuseAt(at, `expected ${what}, found ${found}`);
  }

  /** The database can hold neither; found here, the answer says where. */
  #refuseUnstorable(text: string, at: number): void {
    if (text.includes("\0") || !text.isWellFormed())
      throw this.refuseAt(at, "NUL and halves of surrogate pairs are not allowed");
  }
}

/** Whether a value can stand without quotes. */
export function isBare(value: string): boolean {
  BARE.lastIndex = 0;
  return BARE.exec(value)?.[0] === value && !BEGINS_AS_OPERATOR.test(value);
}

/** Whether a key of a label can stand without quotes. */
export function isBareName(name: string): boolean {
  NAME.lastIndex = 0;
  return NAME.exec(name)?.[0] === name;
}

/** After an operator this is more likely a slip (`=~`, `=>`) than a value. */
export const BEGINS_AS_OPERATOR = /^[<>~^]/;
