/**
 * Which announced actions this process has begun. An announcement alone does not tell: what came of the action may never have
 * been written, because the database was away or somebody else's change came first, and the device has obeyed all the same.
 */
export class BegunActions {
  readonly #begun = new Set<string>();
  readonly #most: number;

  constructor(most = 10_000) {
    this.#most = most;
  }

  note(action: string): void {
    this.#begun.add(action);
    for (const oldest of this.#begun) {
      if (this.#begun.size <= this.#most) return;
      this.#begun.delete(oldest);
    }
  }

  has(action: string): boolean {
    return this.#begun.has(action);
  }
}
