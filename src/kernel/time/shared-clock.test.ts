import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Log } from "../log.ts";
import { type Clock, readingFor, systemClock } from "./clock.ts";
import { SharedClock } from "./shared-clock.ts";

const START = Date.parse("2026-01-31T12:00:00Z");

/** A host whose clock is off, and a database whose clock is true; both in time that only the test lets pass. */
function setUp({ aheadBy = 0, runsFastBy = 0 }: { aheadBy?: number; runsFastBy?: number } = {}) {
  let passed = 0;
  let step = 0;
  let ahead = aheadBy;
  let mostLate = Number.POSITIVE_INFINITY;
  const lines: string[] = [];
  const write = (level: string) => (_: object, message: string) => void lines.push(`${level}: ${message}`);
  const log: Log = { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
  const monotonic = () => 5_000 + passed * (1 + runsFastBy);
  const local: Clock = { monotonic, now: () => new Date(START + ahead + passed * (1 + runsFastBy)) };
  const clock = new SharedClock({ local, log });
  const truth = () => START + step + passed;
  const it = {
    clock,
    lines,
    truth,
    pass(ms: number) {
      passed += ms;
    },
    setDatabaseBy(ms: number) {
      step += ms;
    },
    setHostBy(ms: number) {
      ahead += ms;
    },
    /** A statement takes its time on the way there, and on the way back. */
    exchange(there: number, back: number) {
      const askedAt = monotonic();
      const onTime = readingFor(clock);
      it.pass(there);
      const shown = truth();
      it.pass(back);
      onTime(shown);
      mostLate = Math.min(mostLate, shown - askedAt);
    },
    /** No statement so far allows for a later time than this. */
    latest: () => monotonic() + mostLate,
    now: () => clock.now().getTime(),
  };
  return it;
}

const way = fc.double({ min: 0, max: 3_000, noNaN: true });
const act = fc.oneof(
  fc.record({ type: fc.constant("pass" as const), ms: fc.double({ min: 0, max: 600_000, noNaN: true }) }),
  fc.record({ type: fc.constant("exchange" as const), there: way, back: way }),
  fc.record({ type: fc.constant("look" as const) }),
);
const host = fc.record({
  aheadBy: fc.integer({ min: -3_600_000, max: 3_600_000 }),
  runsFastBy: fc.double({ min: -0.0005, max: 0.0005, noNaN: true }),
});
/** A Date has no fractions, and a number of this size few. */
const ROUNDING = 1.01;

describe("a shared clock", () => {
  test("is the local one until the other was heard of", () => {
    const { clock, now } = setUp({ aheadBy: 90_000 });
    expect(now()).toBe(START + 90_000);
    expect(clock.localIsAheadBy).toBeUndefined();
    expect(clock.trouble).toBeNull();
  });

  test("tells the other one's time, wherever the local one stands", () => {
    for (const aheadBy of [90_000, -600_000]) {
      const { clock, exchange, pass, now, truth } = setUp({ aheadBy });
      exchange(2, 2);
      pass(10_000);
      expect(now()).toBe(truth());
      expect(clock.localIsAheadBy).toBeCloseTo(aheadBy, 1);
    }
  });

  test("does not care where the local one is set to later", () => {
    const { exchange, setHostBy, now, truth } = setUp();
    exchange(1, 1);
    setHostBy(-3_600_000);
    expect(now()).toBe(truth());
  });

  test("is never wrong by more than it says, whatever statements take, and however far and fast the host's clock is off", () => {
    fc.assert(
      fc.property(host, fc.array(act, { minLength: 1, maxLength: 40 }), (options, acts) => {
        const it = setUp(options);
        it.exchange(5, 5);
        for (const one of acts) {
          if (one.type === "pass") it.pass(one.ms);
          if (one.type === "exchange") it.exchange(one.there, one.back);
          expect(Math.abs(it.now() - it.truth())).toBeLessThanOrEqual(it.clock.uncertainty + ROUNDING);
        }
      }),
    );
  });

  test("right after a statement is wrong by no more than the statement took, and a slow one spoils nothing", () => {
    fc.assert(
      fc.property(host, fc.array(fc.tuple(way, way), { minLength: 1, maxLength: 40 }), (options, ways) => {
        const it = setUp(options);
        let known = Number.POSITIVE_INFINITY;
        for (const [there, back] of ways) {
          it.exchange(there, back);
          // By what both clocks may drift apart while the statement is under way, and by what the host's is really too fast.
          const round = (there + back) * 1.002;
          known = Math.min(round, known + round * 0.003);
          expect(it.clock.uncertainty).toBeLessThanOrEqual(known + ROUNDING);
          expect(Math.abs(it.now() - it.truth())).toBeLessThanOrEqual(known + ROUNDING);
        }
      }),
    );
  });

  test("knows no less after a slow statement, though the host's clock falls behind meanwhile", () => {
    const it = setUp({ runsFastBy: -0.0005 });
    it.exchange(0, 0.1);
    it.exchange(0, 3_000); // shown at once: by the host's clock, the answer comes 1.5 ms too early to fit
    expect(it.clock.uncertainty).toBeLessThan(10);
    expect(Math.abs(it.now() - it.truth())).toBeLessThanOrEqual(10);
  });

  test("goes back only as far as a measurement proves it must, and otherwise never", () => {
    fc.assert(
      fc.property(host, fc.array(act, { minLength: 1, maxLength: 40 }), (options, acts) => {
        const it = setUp(options);
        it.exchange(5, 5);
        let told = it.now();
        for (const one of acts) {
          const doubt = it.clock.uncertainty;
          if (one.type === "pass") it.pass(one.ms);
          if (one.type === "exchange") it.exchange(one.there, one.back);
          const now = it.now();
          if (one.type !== "exchange") expect(now).toBeGreaterThanOrEqual(told);
          expect(now).toBeGreaterThanOrEqual(Math.min(told, it.latest()) - ROUNDING);
          // What was told could be late by the doubt that there was: never is more taken back than that.
          expect(now).toBeGreaterThanOrEqual(told - doubt - ROUNDING);
          told = now;
        }
      }),
    );
  });

  test("stands still rather than going back, when better measurements make it no more than likely that it was late", () => {
    const it = setUp();
    it.exchange(3_000, 0);
    const told = it.now();
    expect(told - it.truth()).toBeCloseTo(1_500, -1); // the middle of what was possible
    it.exchange(900, 0);
    expect(it.now()).toBe(told);
    it.pass(1_000);
    expect(it.now()).toBeGreaterThan(told);
  });

  test("follows the other one at once when that is set, or is another server's after a failover", () => {
    fc.assert(
      fc.property(host, fc.integer({ min: -3_600_000, max: 3_600_000 }), (options, by) => {
        const it = setUp(options);
        it.exchange(5, 5);
        it.now();
        it.setDatabaseBy(by);
        it.exchange(5, 5);
        expect(Math.abs(it.now() - it.truth())).toBeLessThanOrEqual(10 + ROUNDING);
      }),
    );
  });

  test("warns once when the host's clock is off, and says once when it is right again", () => {
    const it = setUp({ aheadBy: 90_000 });
    for (let statements = 0; statements < 5; statements += 1) it.exchange(1, 1);
    expect(it.lines).toEqual([expect.stringMatching(/^warn: this host's clock is 1m 30s ahead of the database's/)]);
    expect(it.clock.trouble).toBe("this host's clock is 1m 30s ahead of the database's");
    it.setHostBy(-90_000 - 700); // less than is warned of, and not clearly right
    it.exchange(1, 1);
    expect(it.lines).toHaveLength(1);
    it.setHostBy(700);
    for (let statements = 0; statements < 5; statements += 1) it.exchange(1, 1);
    expect(it.lines.slice(1)).toEqual(["info: this host's clock agrees with the database's again"]);
    expect(it.clock.trouble).toBeNull();
    it.setHostBy(-600_000);
    it.exchange(1, 1);
    expect(it.lines[2]).toMatch(/^warn: this host's clock is 10m behind the database's/);
  });

  test("accuses no host whose clock is nearly right, however long statements take", () => {
    const nearly = fc.integer({ min: -990, max: 990 });
    fc.assert(
      fc.property(nearly, fc.array(fc.tuple(way, way), { minLength: 1, maxLength: 20 }), (aheadBy, ways) => {
        const it = setUp({ aheadBy });
        for (const [there, back] of ways) it.exchange(there, back);
        expect(it.lines).toEqual([]);
      }),
    );
  });

  test("accuses one whose clock may be right only once a quick statement has proven that it is not", () => {
    const it = setUp({ aheadBy: 1_500 });
    it.exchange(4_000, 0);
    expect(it.lines).toEqual([]);
    it.exchange(1, 1);
    expect(it.lines).toHaveLength(1);
  });
});

test("a clock that goes by no other one takes no notice of readings", () => {
  expect(() => readingFor(systemClock)(0)).not.toThrow();
  expect(Math.abs(systemClock.now().getTime() - Date.now())).toBeLessThan(1_000);
});
