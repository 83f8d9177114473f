import type { CallContext } from "../capabilities/call.ts";
import { type Duration, describeDuration, minutes } from "../kernel/duration.ts";
import { StepFailure } from "../kernel/errors.ts";
import { LONGEST_CALL } from "./lease.ts";

/** A handler is short; one that is not back by then is told to stop, so that it cannot hold its thing for ever. */
export const LONGEST_HANDLING: Duration = minutes(5);

/**
 * Runs a handler that must come to an end: after the longest handling it is told to stop, and from the moment that it is told
 * so, for whatever reason, it has as long as a device call may last. Then it is left behind, and can touch no device any more.
 */
export async function runBounded<T>(
  call: CallContext,
  handle: (call: CallContext) => Promise<T>,
  longest: Duration = LONGEST_HANDLING,
): Promise<T> {
  const tooLong = new AbortController();
  const leftBehind = Promise.withResolvers<never>();
  let isOver: unknown;
  const leave = (reason: unknown) => {
    isOver = reason;
    leftBehind.reject(reason);
  };
  const signal = AbortSignal.any([call.signal, tooLong.signal]);
  let timer = setTimeout(
    () => tooLong.abort(new StepFailure("retry", `the work did not end within ${describeDuration(longest)}`)),
    longest,
  );
  const onStop = () => {
    clearTimeout(timer);
    timer = setTimeout(() => leave(signal.reason), LONGEST_CALL);
  };
  if (signal.aborted) onStop();
  else signal.addEventListener("abort", onStop, { once: true });
  try {
    const bounded: CallContext = {
      subject: call.subject,
      signal,
      mayTouchDevice(wanted) {
        if (isOver !== undefined) throw isOver;
        return call.mayTouchDevice(wanted);
      },
    };
    return await Promise.race([handle(bounded), leftBehind.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onStop);
  }
}
