import type { Clock } from "../../kernel/time/clock.ts";
import type { Duration } from "../../kernel/time/duration.ts";

export interface SharedReadsOptions<Answer> {
  readonly clock: Clock;
  /** How long an answer is given again, a failure too. */
  readonly keepFor: Duration;
  readonly read: (key: string) => Promise<Answer>;
}

interface Kept<Answer> {
  readonly answer: Promise<Answer>;
  /** Null: it is under way. */
  endedAt: number | null;
}

/**
 * One read for all callers that ask for the same at once, or shortly after: however many ask, and however often, a device answers one.
 * A caller who stops waiting ends no read that others wait for.
 */
export function shareReads<Answer>({
  clock,
  keepFor,
  read,
}: SharedReadsOptions<Answer>): (key: string, signal: AbortSignal) => Promise<Answer> {
  const reads = new Map<string, Kept<Answer>>();
  const forgetOld = () => {
    for (const [key, { endedAt }] of reads)
      if (endedAt !== null && clock.monotonic() - endedAt >= keepFor) reads.delete(key);
  };
  const begin = (key: string): Kept<Answer> => {
    const kept: Kept<Answer> = { answer: read(key), endedAt: null };
    const end = () => {
      kept.endedAt = clock.monotonic();
    };
    kept.answer.then(end, end);
    reads.set(key, kept);
    return kept;
  };
  return async (key, signal) => {
    signal.throwIfAborted();
    forgetOld();
    return untilAborted((reads.get(key) ?? begin(key)).answer, signal);
  };
}

function untilAborted<Answer>(answer: Promise<Answer>, signal: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    answer.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
