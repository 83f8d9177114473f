import { compareCursors, type JournalRow } from "../store/lifecycle/journal.ts";

const NEAR = 32;

/** The newest rows of the journal, in memory, for everybody who keeps up. Bounded: the oldest make room. */
export class JournalWindow {
  readonly #most: number;
  #rows: JournalRow[] = [];
  /** Everything after this cursor, up to the head, is in the window. */
  #start: string;

  constructor(start: string, most: number) {
    this.#start = start;
    this.#most = most;
  }

  /** The last row that was read. */
  get head(): string {
    return this.#rows.at(-1)?.cursor ?? this.#start;
  }

  push(rows: readonly JournalRow[]): void {
    for (const row of rows) this.#rows.push(row);
    if (this.#rows.length <= this.#most * 2) return; // dropped in one go, now and then, since shifting one by one is slow
    const dropped = this.#rows.splice(0, this.#rows.length - this.#most);
    this.#start = dropped.at(-1)?.cursor ?? this.#start;
  }

  /** Rows after the cursor; undefined when the window no longer reaches back that far. */
  after(cursor: string, most: number): readonly JournalRow[] | undefined {
    // Who keeps up is at one of the last rows: found without taking cursors apart.
    for (let index = this.#rows.length - 1; index >= Math.max(0, this.#rows.length - NEAR); index -= 1) {
      if (this.#rows[index]?.cursor === cursor) return this.#rows.slice(index + 1, index + 1 + most);
    }
    if (compareCursors(cursor, this.#start) < 0) return undefined;
    let [low, high] = [0, this.#rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareCursors((this.#rows[middle] as JournalRow).cursor, cursor) > 0) high = middle;
      else low = middle + 1;
    }
    return this.#rows.slice(low, low + most);
  }
}
