import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSeededValues } from "../seeded-values.ts";
import { openStateJournal } from "../state-journal.ts";
import { temporaryDataDir } from "../testing/temporary-simulator.ts";
import { FaultBook } from "./fault-book.ts";
import type { FaultRule } from "./fault-rule.ts";

const occasion = { device: "shelf", method: "GET", path: "/redfish/v1" };

function withBook<T>(run: (book: FaultBook, again: () => FaultBook, time: { real: number }) => T, seed = 1): T {
  using dir = temporaryDataDir();
  const file = join(dir.path, "journal");
  const journal = openStateJournal(file);
  const time = { real: 1_000 };
  const open = (from: typeof journal) =>
    new FaultBook({ journal: from, seeded: createSeededValues(seed), realNow: () => time.real, atStart: [] });
  try {
    return run(open(journal), () => open(openStateJournal(file)), time);
  } finally {
    journal.close();
  }
}

const pattern = (book: FaultBook, count: number) =>
  Array.from({ length: count }, () => book.transport(occasion).ending !== undefined);

describe("fault book", () => {
  test("a rule strikes after `after` occasions, then `times` times, then never", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 1, max: 5 }), (after, times) => {
        withBook((book) => {
          book.add({ device: "shelf", fault: { type: "drop" }, after, times });
          const expected = Array.from({ length: 12 }, (_, index) => index >= after && index < after + times);
          expect(pattern(book, 12)).toEqual(expected);
        });
      }),
      { numRuns: 30 },
    );
  });

  test("chances follow from the seed, come near their probability, and differ between seeds", () => {
    const rule: FaultRule = { device: "*", fault: { type: "drop" }, probability: 0.3 };
    const draw = (seed: number) =>
      withBook((book) => {
        book.add(rule);
        return pattern(book, 1_000);
      }, seed);
    const first = draw(1);
    expect(draw(1)).toEqual(first);
    expect(draw(2)).not.toEqual(first);
    expect(Math.abs(first.filter(Boolean).length - 300)).toBeLessThan(60);
  });

  test.each([
    [0, 0],
    [1, 20],
  ])("a probability of %d strikes %d times out of 20", (probability, strikes) => {
    withBook((book) => {
      book.add({ device: "*", fault: { type: "drop" }, probability });
      expect(pattern(book, 20).filter(Boolean)).toHaveLength(strikes);
    });
  });

  test("a new process goes on counting where a killed one stopped", () => {
    withBook((book, again) => {
      book.add({ device: "*", fault: { type: "drop" }, after: 1, times: 2 });
      expect(pattern(book, 2)).toEqual([false, true]);
      const later = again();
      expect(later.list()).toMatchObject([{ id: "fault-1", seen: 2, applied: 1 }]);
      expect(pattern(later, 2)).toEqual([true, false]);
    });
  });

  test("a removed rule stays removed, and its id is not given again", () => {
    withBook((book, again) => {
      const { id } = book.add({ device: "*", fault: { type: "drop" } });
      expect(book.remove(id)).toBe(true);
      expect(book.remove(id)).toBe(false);
      expect(again().list()).toEqual([]);
      expect(again().add({ device: "*", fault: { type: "hang" } }).id).not.toBe(id);
    });
  });

  test("latencies add up, and the first rule that ends the request decides how", () => {
    withBook((book) => {
      book.add({ device: "*", fault: { type: "latency", ms: 10 } });
      book.add({ device: "*", fault: { type: "latency", ms: 5 } });
      book.add({ device: "*", fault: { type: "status", status: 503 }, times: 1 });
      book.add({ device: "*", fault: { type: "hang" } });
      expect(book.transport(occasion)).toEqual({ latencyMs: 15, ending: { type: "status", status: 503 } });
      expect(book.transport(occasion)).toEqual({ latencyMs: 15, ending: { type: "hang" } });
    });
  });

  test("a flapping device is up first, then down, then up again, in real time", () => {
    withBook((book, _again, time) => {
      book.add({ device: "*", fault: { type: "flap", up_ms: 100, down_ms: 50 } });
      const start = time.real;
      const isDown = (after: number) => {
        time.real = start + after;
        return book.transport(occasion).ending !== undefined;
      };
      expect([0, 99, 100, 149, 150, 249, 250].map(isDown)).toEqual([false, false, true, true, false, false, true]);
    });
  });

  test("a fault of the device counts only the occasions at which it matters", () => {
    withBook((book) => {
      book.add({ device: "*", fault: { type: "lie_accept" }, times: 1 });
      expect(pattern(book, 5).some(Boolean)).toBe(false);
      expect(book.strike("lie_state", occasion)).toBeUndefined();
      expect(book.strike("lie_accept", occasion)).toMatchObject({ id: "fault-1" });
      expect(book.strike("lie_accept", occasion)).toBeUndefined();
    });
  });
});
