/** So many do something at the same time; the others wait for their turn, in order. */
export interface Slots {
  /** Who leaves while it waits takes no turn. Give the turn back exactly once. */
  take(signal: AbortSignal): Promise<() => void>;
}

export function createSlots(most: number): Slots {
  let free = most;
  const waiting = new Set<() => void>();
  const giveBack = () => {
    const [next] = waiting;
    if (next === undefined) free += 1;
    else next();
  };
  return {
    async take(signal) {
      signal.throwIfAborted();
      if (free > 0) {
        free -= 1;
        return giveBack;
      }
      return new Promise((resolve, reject) => {
        const leave = () => {
          waiting.delete(turn);
          reject(signal.reason);
        };
        const turn = () => {
          waiting.delete(turn);
          signal.removeEventListener("abort", leave);
          resolve(giveBack);
        };
        waiting.add(turn);
        signal.addEventListener("abort", leave, { once: true });
      });
    },
  };
}
