import type { LogChunk } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { harmless } from "../../api/hostile-text.ts";
import { toMillis } from "../../api/times.ts";

export interface LogLine {
  readonly at: number;
  readonly step: string;
  readonly isError: boolean;
  readonly text: string;
  /** With the colours that its writer gave it; absent where it has none. */
  readonly coloured?: string;
}

/** Lines in their order. None is copied to show a few of them. */
export interface Lines {
  readonly count: number;
  at(index: number): LogLine | undefined;
  /** The same for a line however much is put before it. */
  numberOf(index: number): number;
}

/** Chunks of bytes, cut where the writer happened to stop, as lines. More can be put at both ends. */
export class LogLines {
  #chunks: LogChunk[] = [];
  #lines: LogLine[] = [];
  /** The number of the first line. */
  #first = 0;
  #decoder = new TextDecoder();
  #open: { readonly chunk: LogChunk; readonly text: string } | undefined;

  get chunks(): readonly LogChunk[] {
    return this.#chunks;
  }

  append(chunk: LogChunk): void {
    this.#chunks.push(chunk);
    this.#split(chunk);
  }

  /** What was cut in two where the parts meet is whole then. */
  prepend(chunks: readonly LogChunk[]): void {
    const end = this.#first + this.#lines.length;
    this.#chunks = [...chunks, ...this.#chunks];
    this.#lines = [];
    this.#decoder = new TextDecoder();
    this.#open = undefined;
    for (const chunk of this.#chunks) this.#split(chunk);
    this.#first = end - this.#lines.length;
  }

  /** As they are now, with the line that has no end yet. */
  all(): Lines {
    const [lines, first] = [this.#lines, this.#first];
    const { length } = lines; // more is written at the end of the same array later
    const open = this.#open && lineOf(this.#open.chunk, this.#open.text);
    return {
      count: length + (open ? 1 : 0),
      at: (index) => (index < length ? lines[index] : index === length ? open : undefined),
      numberOf: (index) => first + index,
    };
  }

  #split(chunk: LogChunk): void {
    const isSame = this.#open?.chunk.stream === chunk.stream && this.#open.chunk.step === chunk.step;
    if (this.#open && !isSame) this.#close();
    const text = `${this.#open?.text ?? ""}${this.#decoder.decode(chunk.data, { stream: true })}`;
    const parts = text.split("\n");
    const rest = parts.pop() ?? "";
    for (const part of parts) this.#lines.push(lineOf(chunk, part));
    this.#open = rest === "" ? undefined : { chunk, text: rest };
  }

  #close(): void {
    if (this.#open) this.#lines.push(lineOf(this.#open.chunk, this.#open.text));
    this.#open = undefined;
  }
}

function lineOf({ ts, step, stream }: LogChunk, written: string): LogLine {
  const text = written.replace(/\r$/, "");
  return {
    ...{ step, isError: stream === "stderr", at: toMillis(ts) ?? 0, text: harmless(text) },
    ...(text.includes("\u001b[") && { coloured: text }),
  };
}

/** Those that are wanted, with the numbers that they have among all. */
export function linesThat(lines: Lines, isWanted: (line: LogLine) => boolean): Lines {
  const found: number[] = [];
  for (let index = 0; index < lines.count; index += 1) {
    const line = lines.at(index);
    if (line && isWanted(line)) found.push(index);
  }
  return {
    count: found.length,
    at: (index) => lines.at(found[index] ?? -1),
    numberOf: (index) => lines.numberOf(found[index] ?? -1),
  };
}

/** Where the line of a number is, or would be. */
export function indexOfNumber(lines: Lines, number: number): number {
  let [low, high] = [0, lines.count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lines.numberOf(middle) < number) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Where a step began to write; of one that failed, the last thing that it wrote as an error. -1: it wrote nothing that is here. */
export function placeOfStep(lines: Lines, step: string, hasFailed: boolean): number {
  let [first, last, error] = [-1, -1, -1];
  for (let index = 0; index < lines.count; index += 1) {
    const line = lines.at(index);
    if (line?.step !== step) continue;
    if (first < 0) first = index;
    last = index;
    if (line.isError && line.text !== "") error = index;
  }
  if (!hasFailed) return first;
  return error < 0 ? last : error;
}
