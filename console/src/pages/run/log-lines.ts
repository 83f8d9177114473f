import type { LogChunk } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { harmless } from "../../api/hostile-text.ts";
import { toMillis } from "../../api/times.ts";

export interface LogLine {
  readonly number: number;
  readonly at: number;
  readonly step: string;
  readonly isError: boolean;
  readonly text: string;
}

/** What a reader can scroll through. Of a longer log the newest lines are here; the whole is for `millwright run logs`. */
export const MOST_LINES = 20_000;

/** Chunks of bytes, cut where the writer happened to stop, as lines. */
export class LogLines {
  #lines: LogLine[] = [];
  #count = 0;
  readonly #decoder = new TextDecoder();
  #open: { readonly chunk: LogChunk; readonly text: string } | undefined;

  add(chunk: LogChunk): void {
    const isSame = this.#open?.chunk.stream === chunk.stream && this.#open.chunk.step === chunk.step;
    if (this.#open && !isSame) this.#close();
    const text = `${this.#open?.text ?? ""}${this.#decoder.decode(chunk.data, { stream: true })}`;
    const parts = text.split("\n");
    const rest = parts.pop() ?? "";
    for (const part of parts) this.#push(chunk, part);
    this.#open = rest === "" ? undefined : { chunk, text: rest };
  }

  /** With the line that has no end yet. */
  all(): readonly LogLine[] {
    if (!this.#open) return [...this.#lines];
    return [...this.#lines, lineOf(this.#open.chunk, this.#open.text, this.#count + 1)];
  }

  #close(): void {
    if (this.#open) this.#push(this.#open.chunk, this.#open.text);
    this.#open = undefined;
  }

  #push(chunk: LogChunk, text: string): void {
    this.#count += 1;
    this.#lines.push(lineOf(chunk, text, this.#count));
    if (this.#lines.length > MOST_LINES * 1.2) this.#lines = this.#lines.slice(-MOST_LINES);
  }
}

const lineOf = ({ ts, step, stream }: LogChunk, text: string, number: number): LogLine => ({
  ...{ number, step, isError: stream === "stderr" },
  at: toMillis(ts) ?? 0,
  text: harmless(text.replace(/\r$/, "")),
});
