let last: Promise<void> = Promise.resolve();

/**
 * Waits until everything else that is ready has been looked at, and lets one go on at a time. Long computations that all become possible at the
 * same moment, such as the answers of many queries, would else be done one after the other, while probes and other callers wait for all of them.
 */
export function takeTurn(): Promise<void> {
  last = last.then(() => new Promise((resolve) => void setImmediate(resolve)));
  return last;
}
