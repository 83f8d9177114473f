/**
 * Passes a stream on until the signal is aborted, then ends it with the signal's reason, even while the source is waiting.
 *
 * With it no handler can hold up a shutdown. (A `Promise.race` against the signal would gather one reaction per message on the
 * signal's promise: a leak for streams that stay open for weeks.)
 */
export async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  let giveUp: (reason: unknown) => void = () => {};
  const onAbort = () => giveUp(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      const result = await new Promise<IteratorResult<T>>((resolve, reject) => {
        giveUp = reject;
        if (signal.aborted) reject(signal.reason);
        else iterator.next().then(resolve, reject);
      });
      if (result.done === true) return;
      yield result.value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    // Not awaited: a source that hangs in its next message would keep us here.
    iterator.return?.().catch(() => {});
  }
}
