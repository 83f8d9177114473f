import type { CallContext } from "../../capabilities/call.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { type Duration, describeDuration, minutes } from "../../kernel/time/duration.ts";
import { LONGEST_CALL } from "./lease.ts";

/** A handler is short. One that takes longer is stopped, so that it cannot hold its thing for ever. */
const LONGEST_HANDLING: Duration = minutes(5);

/**
 * Runs a handler that must come to an end. After the longest handling it gets the signal to stop. From a stop on, whatever its reason, it
 * has as long as a device call may last. Then it is left behind, and can touch no device any more.
 */
export async function runBounded<T>(
  call: CallContext,
  handle: (call: CallContext) => Promise<T>,
  longest: Duration = LONGEST_HANDLING,
): Promise<T> {
  // One controller that passes the stop on: AbortSignal.any costs several times as much, and this is needed for every pass.
  const ending = new AbortController();
  const { signal } = ending;
  const passOn = () => ending.abort(call.signal.reason);
  const leftBehind = Promise.withResolvers<never>();
  let isOver: unknown;
  const leave = (reason: unknown) => {
    isOver = reason;
    leftBehind.reject(reason);
  };
  let timer = setTimeout(
    () => ending.abort(new StepFailure("not_done_in_time", `the work did not end within ${describeDuration(longest)}`)),
    longest,
  );
  const onStop = () => {
    clearTimeout(timer);
    timer = setTimeout(() => leave(signal.reason), LONGEST_CALL);
  };
  signal.addEventListener("abort", onStop, { once: true });
  if (call.signal.aborted) passOn();
  else call.signal.addEventListener("abort", passOn, { once: true });
  try {
    const bounded: CallContext = {
      subject: call.subject,
      signal,
      ...(call.mayBegin && { mayBegin: call.mayBegin }),
      ...(call.streams && { streams: call.streams }),
      mayTouchDevice(wanted) {
        if (isOver !== undefined) throw isOver;
        return call.mayTouchDevice(wanted);
      },
    };
    return await Promise.race([handle(bounded), leftBehind.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onStop);
    call.signal.removeEventListener("abort", passOn);
  }
}
