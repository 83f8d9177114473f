import { expect, test } from "vitest";
import { hours, milliseconds } from "../../kernel/time/duration.ts";
import { untilNextPass } from "./between-passes.ts";
import type { LeaseStream } from "./lease-stream.ts";

const never = new Promise<void>(() => undefined);
const streaming = (ended: Promise<void> = never) => ({ ended }) as LeaseStream;

test("without a stream, or once the lease is over, nothing is waited for", async () => {
  const open = new AbortController().signal;
  await expect(untilNextPass({ stream: undefined, signal: open }, null, never)).resolves.toBeUndefined();
  await expect(
    untilNextPass({ stream: streaming(), signal: AbortSignal.abort() }, null, never),
  ).resolves.toBeUndefined();
});

test.each([
  ["the stream ends", (): Wait => ({ stream: streaming(Promise.resolve()) })],
  ["the replica is stopped", (): Wait => ({ stopped: Promise.resolve() })],
  ["the next pass is due", (): Wait => ({ after: milliseconds(1) })],
])("it is over once %s", async (_, wait) => {
  const { stream = streaming(), after = hours(1), stopped = never } = wait();
  await expect(
    untilNextPass({ stream, signal: new AbortController().signal }, after, stopped),
  ).resolves.toBeUndefined();
});

interface Wait {
  readonly stream?: LeaseStream;
  readonly after?: ReturnType<typeof hours>;
  readonly stopped?: Promise<void>;
}

test("it is over once the lease is lost", async () => {
  const lost = new AbortController();
  const waiting = untilNextPass({ stream: streaming(), signal: lost.signal }, null, never);
  lost.abort();
  await expect(waiting).resolves.toBeUndefined();
});
