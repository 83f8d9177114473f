import type { Outcome } from "../../kernel/outcome.ts";
import type { HeardSoFar, LogStream } from "./step.ts";

/**
 * How many bytes of each of its streams the run's log was given. Only of the script that was heard last, by its mark: a run has but
 * one at a time, and none is read again once another was begun. A type and no interface, so that it is JSON to the compiler.
 */
export type Heard = { readonly mark: string } & { readonly [stream in LogStream]: number };

/**
 * What one pass hears of scripts. How far it came is written with what it says, in one commit: whoever looks next, whether this
 * process or another one after a crash, goes on from there, so that the log has no hole and no repeat. A pass that is not written
 * has heard nothing.
 */
export class HeardScript implements HeardSoFar {
  readonly #onRecord: Heard | null;
  #heard: Heard | null;

  constructor(onRecord: Heard | null) {
    this.#onRecord = onRecord;
    this.#heard = onRecord;
  }

  get soFar(): Heard | null {
    return this.#heard;
  }

  upTo(mark: string, stream: LogStream): number {
    return this.#heard?.mark === mark ? this.#heard[stream] : 0;
  }

  note(mark: string, stream: LogStream, upTo: number): void {
    const known = this.#heard?.mark === mark ? this.#heard : { mark, stdout: 0, stderr: 0 };
    this.#heard = { ...known, [stream]: upTo };
  }

  /** What the pass comes to, with how far it has heard. */
  addedTo<E extends string>(looked: Outcome<E>): Outcome<E> {
    if (this.#heard === this.#onRecord) return looked;
    return { ...looked, facts: { ...looked.facts, heard: this.#heard } };
  }
}
