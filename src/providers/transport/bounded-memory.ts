/** Things remembered by key, the least recently used forgotten first: what a fleet of any size teaches us fits in fixed memory. */
export class BoundedMemory<V> {
  readonly #limit: number;
  readonly #items = new Map<string, V>();
  readonly #onForget: (value: V, key: string) => void;

  constructor(limit: number, onForget: (value: V, key: string) => void = () => undefined) {
    this.#limit = limit;
    this.#onForget = onForget;
  }

  get size(): number {
    return this.#items.size;
  }

  get(key: string): V | undefined {
    const value = this.#items.get(key);
    if (value !== undefined) {
      this.#items.delete(key);
      this.#items.set(key, value);
    }
    return value;
  }

  set(key: string, value: V): void {
    const previous = this.#items.get(key);
    this.#items.delete(key);
    this.#items.set(key, value);
    if (previous !== undefined && previous !== value) this.#onForget(previous, key);
    for (const oldest of this.#items.keys()) {
      if (this.#items.size <= this.#limit) break;
      this.forget(oldest);
    }
  }

  forget(key: string): void {
    const value = this.#items.get(key);
    if (value === undefined) return;
    this.#items.delete(key);
    this.#onForget(value, key);
  }

  clear(): void {
    for (const key of [...this.#items.keys()]) this.forget(key);
  }

  /** Least recently used first. */
  entries(): readonly (readonly [string, V])[] {
    return [...this.#items];
  }
}
