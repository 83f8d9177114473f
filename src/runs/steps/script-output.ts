import { LOG_STREAMS, type StepLog } from "../step.ts";
import { type DetachedScript, readOutput, type ScriptState } from "./detached-script.ts";

/** Up to where a look read, where it began, by which basis of its run, and whom it told. */
interface Reading {
  readonly from: number;
  readonly began: number;
  readonly basis: number;
  readonly told: WeakRef<StepLog>;
}

/**
 * How far this process has passed on what a script wrote; another process begins anew, so that nothing is left out. A look that
 * passed something on and was written has raised the basis that it was given: under the same basis nobody has heard of it yet,
 * unless within the same look. Nothing is forgotten at a script's end, since that may have to be said again: the oldest make room.
 */
export class OutputReader {
  readonly #read = new Map<string, Reading>();
  readonly #most: number;

  constructor(most = 10_000) {
    this.#most = most;
  }

  /** Passes on what was written since the last time, byte for byte; a character that is not whole yet waits for the rest of it. */
  async passOn(
    script: DetachedScript,
    { log, basis }: { readonly log: StepLog; readonly basis: number },
    { is }: Pick<ScriptState, "is">,
  ): Promise<void> {
    const isOver = is === "ended" || is === "cut_off";
    for (const stream of LOG_STREAMS) {
      const key = `${script.mark}/${stream}`;
      const last = this.#read.get(key);
      const began = last === undefined ? 0 : last.basis === basis ? last.began : last.from;
      let from = last?.told.deref() === log ? last.from : began;
      let broken = Buffer.alloc(0);
      let isNoted = false;
      const say = (bytes: Buffer) => {
        // What comes after we have left is read again by the next look.
        if (bytes.length === 0 || isNoted) return;
        from += bytes.length;
        log(bytes, stream);
      };
      try {
        await readOutput(script, { stream, from }, (text) => {
          const bytes = Buffer.concat([broken, text]);
          const whole = wholeCharacters(bytes);
          broken = bytes.subarray(whole);
          say(bytes.subarray(0, whole));
        });
        if (isOver) say(broken);
      } finally {
        // Also when the answer breaks off: what was passed on until then is not to be said twice.
        isNoted = true;
        this.#note(key, { from, began, basis, told: new WeakRef(log) });
      }
    }
  }

  #note(key: string, reading: Reading): void {
    this.#read.delete(key);
    this.#read.set(key, reading);
    for (const oldest of this.#read.keys()) {
      if (this.#read.size <= this.#most * 2) return;
      this.#read.delete(oldest);
    }
  }
}

/** How many bytes there are until the last character of which some are still missing; what is no UTF-8 is taken as it is. */
export function wholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0b1100_0000) === 0b1000_0000) continue; // goes on with a character
    const length = byte >= 0b1111_0000 ? 4 : byte >= 0b1110_0000 ? 3 : byte >= 0b1100_0000 ? 2 : 1;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
