import { setTimeout as pause } from "node:timers/promises";
import type { Duration } from "../../kernel/time/duration.ts";
import type { Lease } from "./lease.ts";
import type { LeaseStream } from "./lease-stream.ts";

/**
 * Between two passes over a thing whose stream goes on: until the stream ends or must end, the replica is stopped, or the next pass
 * is due. Null: only one of the others ends the wait.
 */
export async function untilNextPass(
  { stream, signal }: Pick<Lease, "stream" | "signal">,
  after: Duration | null,
  stopped: Promise<void>,
): Promise<void> {
  if (stream === undefined || signal.aborted) return;
  const over = Promise.withResolvers<void>();
  const wake = () => over.resolve();
  const timer = after === null ? undefined : setTimeout(wake, after);
  signal.addEventListener("abort", wake, { once: true });
  await Promise.race([stream.ended, over.promise, stopped]);
  signal.removeEventListener("abort", wake);
  clearTimeout(timer);
}

/** What a pass made of the stream was not written: after a pause the next pass takes it again, and the thing as it is then. */
export async function takeAgain(lease: Lease, stream: LeaseStream, after: Duration): Promise<void> {
  stream.putBack();
  lease.nextThing = undefined;
  await pause(after);
}
