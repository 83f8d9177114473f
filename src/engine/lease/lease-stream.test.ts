import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { OpenStream, StreamCall } from "../../capabilities/stream.ts";
import { seconds } from "../../kernel/time/duration.ts";
import { Lease, type LeaseTimes } from "./lease.ts";
import { LeaseStreams } from "./lease-streams.ts";

const TIMES: LeaseTimes = { own: seconds(12), longestCall: seconds(10) };
const OPTIONS = { to: "bmc", longestChunk: seconds(30) } as const;
const NEVER = new Promise<never>(() => undefined);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const clock = { now: () => new Date(), monotonic: () => performance.now() };

function setUp({ isOurs = true } = {}) {
  const lease = new Lease({ kind: "run", id: "r", epoch: 1, failures: 0 }, clock, clock.monotonic(), TIMES);
  const stop = new AbortController();
  const prolonged: number[] = [];
  const streams = new LeaseStreams(lease, lease.callContext(stop.signal), {
    clock,
    prolong: async (_, leaseFor) => {
      prolonged.push(leaseFor);
      return isOurs;
    },
    isFull: () => false,
  });
  return { lease, stop, streams, prolonged };
}

/** Sends chunks that take a second each until it is stopped. */
const sending =
  (sent: number[], chunk = (signal: AbortSignal) => waitFor(seconds(1), signal)) =>
  async (call: StreamCall): Promise<void> => {
    for (;;) {
      await call.sendChunk((signal) => {
        sent.push(clock.monotonic());
        return chunk(signal);
      });
      call.report({ bytes: sent.length });
    }
  };

const waitFor = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });

const endOf = (stream: OpenStream) => stream.take();

describe("a stream", () => {
  test("begins once the lease in the database covers its longest chunk", async () => {
    const { streams, prolonged, lease } = setUp();
    await streams.open(OPTIONS, () => NEVER);
    expect(prolonged).toEqual([lease.inDatabase]);
    expect(lease.inDatabase - TIMES.own).toBeGreaterThan(OPTIONS.longestChunk);
  });

  test("that is withdrawn goes on, and knows that it may begin nothing more", async () => {
    const { streams } = setUp();
    const sent: number[] = [];
    let call: StreamCall | undefined;
    const stream = await streams.open(OPTIONS, (given) => {
      call = given;
      return sending(sent)(given);
    });
    expect(call?.withdrawn?.aborted).toBe(false);
    stream.withdraw();
    expect(call?.withdrawn?.aborted).toBe(true);
    const before = sent.length;
    await vi.advanceTimersByTimeAsync(seconds(3));
    expect(sent.length).toBeGreaterThan(before);
    expect(endOf(stream)).toBeUndefined();
    await stream.stop(new Error("the test is over"));
  });

  test("waits for a renewal that asks for less, so that it cannot arrive last", async () => {
    const { streams, prolonged, lease } = setUp();
    const renewal = Promise.withResolvers<void>();
    lease.renewal = renewal.promise;
    const opening = streams.open(OPTIONS, () => NEVER);
    await vi.advanceTimersByTimeAsync(100);
    expect(prolonged).toEqual([]);
    renewal.reject(new Error("the database is away"));
    await opening;
    expect(prolonged).toHaveLength(1);
  });

  test("does not begin when the lease is not ours any more", async () => {
    const { streams, lease } = setUp({ isOurs: false });
    const sent: number[] = [];
    await expect(streams.open(OPTIONS, sending(sent))).rejects.toThrow("the lease was lost before the stream began");
    expect(sent).toEqual([]);
    expect(lease.signal.aborted).toBe(true);
  });

  test("goes on for as long as its lease is renewed, and shows how far it is", async () => {
    const { streams, lease } = setUp();
    const stream = await streams.open(OPTIONS, sending([]));
    for (let minute = 0; minute < 10; minute += 1)
      for (let time = 0; time < 60; time += 4) {
        lease.renewed(clock.monotonic());
        await vi.advanceTimersByTimeAsync(4_000);
      }
    expect(endOf(stream)).toBeUndefined();
    expect(stream.progress).toEqual({ bytes: 600 });
  });

  test("sends no further chunk once the lease is over", async () => {
    const { streams } = setUp();
    const sent: number[] = [];
    const from = clock.monotonic();
    const stream = await streams.open(OPTIONS, sending(sent));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(Math.max(...sent) - from).toBeLessThan(TIMES.own);
    expect(endOf(stream)).toMatchObject({ error: { code: "stopped" } });
  });

  test("has its chunk aborted when the lease is lost", async () => {
    const { streams, lease } = setUp();
    const stream = await streams.open(
      OPTIONS,
      sending([], (signal) => waitFor(seconds(20), signal)),
    );
    lease.lose();
    await vi.advanceTimersByTimeAsync(0);
    expect(endOf(stream)).toMatchObject({ error: { code: "stopped" } });
  });

  test("fails when the device does not take a chunk in time: it may have, so that it is asked", async () => {
    const { streams, lease } = setUp();
    const stream = await streams.open(
      OPTIONS,
      sending([], (signal) => waitFor(seconds(40), signal)),
    );
    for (let time = 0; time <= 32; time += 4) {
      lease.renewed(clock.monotonic());
      await vi.advanceTimersByTimeAsync(4_000);
    }
    expect(endOf(stream)).toMatchObject({
      error: { code: "timed_out", family: "silent", message: "a chunk was not taken within 30s" },
    });
  });

  test("ends at the next chunk when its pass is interrupted", async () => {
    const { streams, lease } = setUp();
    const sent: number[] = [];
    const stream = await streams.open(OPTIONS, sending(sent));
    await vi.advanceTimersByTimeAsync(2_500);
    lease.interrupt("run r is to be ended");
    await vi.advanceTimersByTimeAsync(5_000);
    expect(sent).toHaveLength(3);
    expect(endOf(stream)).toMatchObject({ error: { message: "run r is to be ended" } });
    expect(lease.signal.aborted).toBe(true);
  });

  test("that is stopped is over when its chunk is", async () => {
    const { streams, lease } = setUp();
    const stream = await streams.open(OPTIONS, sending([]));
    await lease.endStream(new Error("shutting down"));
    expect(endOf(stream)).toEqual({ error: new Error("shutting down") });
    expect(streams.underWay).toBeUndefined();
  });

  test("whose sender does not listen is left behind after the longest chunk, and can send nothing more", async () => {
    const { streams, lease } = setUp();
    let send: StreamCall["sendChunk"] | undefined;
    await streams.open(OPTIONS, (call) => {
      send = call.sendChunk;
      return call.sendChunk(() => NEVER).catch(() => NEVER);
    });
    const isOver = vi.fn();
    void lease.endStream(new Error("shutting down")).then(isOver);
    await vi.advanceTimersByTimeAsync(OPTIONS.longestChunk - 1);
    expect(isOver).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(isOver).toHaveBeenCalled();
    await expect(send?.(async () => "sent")).rejects.toThrow("shutting down");
  });

  test("that failed while its chunk is on its way is over only when the chunk is", async () => {
    const { streams, lease } = setUp();
    const stream = await streams.open(OPTIONS, async (call) => {
      void call.sendChunk(() => waitFor(seconds(5), new AbortController().signal));
      throw new Error("read error");
    });
    await vi.advanceTimersByTimeAsync(4_000);
    expect(endOf(stream)).toBeUndefined();
    lease.renewed(clock.monotonic());
    await vi.advanceTimersByTimeAsync(1_000);
    expect(endOf(stream)).toEqual({ error: new Error("read error") });
  });

  test("is one at a time", async () => {
    const { streams } = setUp();
    await streams.open(OPTIONS, () => NEVER);
    await expect(streams.open(OPTIONS, () => NEVER)).rejects.toThrow("run r has a stream already");
  });
});

/** One chunk on its way to the device. */
interface Sent {
  readonly holder: number;
  readonly from: number;
  readonly to: number;
}

/** The row of the run in `work`, as all replicas see it. */
class Row {
  leaseUntil = 0;
  epoch = 0;

  claim(leaseFor: number): number | undefined {
    if (clock.monotonic() < this.leaseUntil) return undefined;
    this.leaseUntil = clock.monotonic() + leaseFor;
    this.epoch += 1;
    return this.epoch;
  }

  renew(epoch: number, leaseFor: number): boolean {
    if (epoch !== this.epoch) return false;
    this.leaseUntil = clock.monotonic() + leaseFor;
    return true;
  }
}

/** What befalls a replica while it holds the lease, chunk by chunk and renewal by renewal; in milliseconds. */
interface Fate {
  /** How long the chunk is on its way, and how long the process then sleeps before it notices. */
  readonly chunks: readonly (readonly [onItsWay: number, paused: number])[];
  /** How late each renewal is sent, how long it takes, and whether the database hears of it. */
  readonly renewals: readonly (readonly [late: number, takes: number, arrives: boolean])[];
}

const fate: fc.Arbitrary<Fate> = fc.record({
  chunks: fc.array(
    fc.tuple(
      fc.integer({ min: 1, max: OPTIONS.longestChunk }),
      fc.oneof(
        { weight: 3, arbitrary: fc.constant(0) },
        { weight: 1, arbitrary: fc.integer({ min: 0, max: 120_000 }) },
      ),
    ),
    { minLength: 1, maxLength: 12 },
  ),
  renewals: fc.array(
    fc.tuple(
      fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: 0, max: 60_000 }) }),
      fc.integer({ min: 0, max: 3_000 }),
      fc.boolean(),
    ),
    { maxLength: 20 },
  ),
});

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A replica that holds the run, sends its chunks and renews its lease as its fate has it, and never notices by itself that it is late. */
async function hold(row: Row, { chunks, renewals }: Fate, wire: Sent[]): Promise<void> {
  const askedAt = clock.monotonic();
  const epoch = row.claim(TIMES.own + TIMES.longestCall);
  if (epoch === undefined) return;
  const lease = new Lease({ kind: "run", id: "r", epoch, failures: 0 }, clock, askedAt, TIMES);
  const streams = new LeaseStreams(lease, lease.callContext(new AbortController().signal), {
    clock,
    prolong: async (_, leaseFor) => row.renew(epoch, leaseFor),
    isFull: () => false,
  });
  const keeping = (async () => {
    for (const [late, takes, arrives] of renewals) {
      await pause(TIMES.own / 3 + late);
      const sentAt = clock.monotonic();
      await pause(takes);
      if (arrives && row.renew(epoch, lease.inDatabase)) lease.renewed(sentAt);
    }
  })();
  const stream = await streams.open(OPTIONS, async (call) => {
    for (const [onItsWay, paused] of chunks) {
      await call.sendChunk(async () => {
        const from = clock.monotonic();
        wire.push({ holder: epoch, from, to: from + onItsWay });
        await pause(onItsWay);
      });
      await pause(paused);
    }
  });
  await Promise.all([keeping, (stream as unknown as { ended: Promise<void> }).ended]);
}

test("whatever befalls replicas, no two of them have a chunk on its way at once, and none sends after a takeover", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fate, { minLength: 2, maxLength: 5 }), async (fates) => {
      const row = new Row();
      const wire: Sent[] = [];
      const takeovers: number[] = [];
      const held: Promise<void>[] = [];
      for (const one of fates) {
        // As soon as the row lets it: the others may be asleep, sending, or about to send.
        await vi.advanceTimersByTimeAsync(Math.max(0, row.leaseUntil - clock.monotonic()));
        while (clock.monotonic() < row.leaseUntil)
          await vi.advanceTimersByTimeAsync(Math.ceil(row.leaseUntil - clock.monotonic()));
        takeovers.push(clock.monotonic());
        held.push(hold(row, one, wire));
        await vi.advanceTimersByTimeAsync(0);
      }
      await vi.advanceTimersByTimeAsync(3_600_000);
      await Promise.all(held);
      for (const { holder, from, to } of wire) {
        const next = takeovers[holder] ?? Number.POSITIVE_INFINITY;
        expect(from).toBeLessThan(next);
        expect(to).toBeLessThanOrEqual(next);
      }
      expect(new Set(wire.map(({ holder }) => holder)).size).toBe(fates.length);
    }),
    { numRuns: 300 },
  );
});
