import { setTimeout as pause } from "node:timers/promises";

const LOOK_AGAIN_MS = 50;

/** Looks until the answer is truthy, and returns it. Fails after `within` milliseconds, saying what was waited for. */
export async function eventually<T>(
  look: () => Promise<T | undefined | null | false>,
  { what, within = 30_000, seen = () => "" }: { what: string; within?: number; seen?: () => string | Promise<string> },
): Promise<T> {
  const deadline = performance.now() + within;
  for (let failure: unknown; ; ) {
    try {
      const answer = await look();
      if (answer) return answer;
      failure = undefined;
    } catch (error) {
      failure = error;
    }
    if (performance.now() > deadline) {
      throw new Error(`not so after ${within} ms: ${what}\n${await seen()}`, { cause: failure });
    }
    await pause(LOOK_AGAIN_MS);
  }
}
