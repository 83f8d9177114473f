import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createBatcher, partsByWeight, runInHalves } from "./batcher.ts";

/** A batcher whose batches end when the test says so. */
function setUp(options: { most: number; atOnce: number }) {
  const batches: { items: readonly number[]; end: (error?: Error) => void }[] = [];
  const batcher = createBatcher<number, string>({
    ...options,
    run: (items) =>
      new Promise((resolve, reject) => {
        const end = (error?: Error) => (error ? reject(error) : resolve(items.map((item) => `done ${item}`)));
        batches.push({ items, end });
      }),
  });
  return { batcher, batches };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("a batcher", () => {
  test("has what is submitted in one tick travel together, and answers each with its own answer", async () => {
    const { batcher, batches } = setUp({ most: 10, atOnce: 1 });
    const answers = Promise.all([1, 2, 3].map((item) => batcher.submit(item)));
    await turn();
    expect(batches.map(({ items }) => items)).toEqual([[1, 2, 3]]);
    batches[0]?.end();
    expect(await answers).toEqual(["done 1", "done 2", "done 3"]);
  });

  test("collects while it is busy, and starts no more batches at once than it may", async () => {
    const { batcher, batches } = setUp({ most: 2, atOnce: 2 });
    const answers = Promise.all([1, 2, 3, 4, 5, 6, 7].map((item) => batcher.submit(item)));
    await turn();
    expect(batches.map(({ items }) => items)).toEqual([
      [1, 2],
      [3, 4],
    ]);
    batches[1]?.end();
    await turn();
    expect(batches[2]?.items).toEqual([5, 6]);
    for (const index of [0, 2]) batches[index]?.end();
    await turn();
    batches[3]?.end();
    expect(await answers).toHaveLength(7);
  });

  test("starts at once when it is idle again", async () => {
    const { batcher, batches } = setUp({ most: 2, atOnce: 1 });
    for (const item of [1, 2]) {
      const answer = batcher.submit(item);
      await turn();
      batches.at(-1)?.end();
      expect(await answer).toBe(`done ${item}`);
    }
  });

  test("gives a batch's failure to all in it and to nobody else", async () => {
    const { batcher, batches } = setUp({ most: 2, atOnce: 2 });
    const answers = Promise.allSettled([1, 2, 3].map((item) => batcher.submit(item)));
    await turn();
    batches[0]?.end(new Error("no"));
    batches[1]?.end();
    expect((await answers).map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
  });
});

describe("running by halves", () => {
  const poison = new Set([3, 6]);
  const runs: number[][] = [];
  const steps = {
    run: async (items: readonly number[]) => {
      runs.push([...items]);
      if (items.some((item) => poison.has(item))) throw new Error("poison");
      return items.map((item) => `done ${item}`);
    },
    isOfTheItem: (error: unknown) => error instanceof Error && error.message === "poison",
    alone: async (item: number) => `set ${item} aside`,
  };

  test("sets aside those that fail alone, and answers all in their order", async () => {
    expect(await runInHalves([1, 2, 3, 4, 5, 6, 7], steps)).toEqual([
      "done 1",
      "done 2",
      "set 3 aside",
      "done 4",
      "done 5",
      "set 6 aside",
      "done 7",
    ]);
  });

  test("needs few runs to find one in many", async () => {
    runs.length = 0;
    await runInHalves(
      Array.from({ length: 512 }, (_, index) => (index === 300 ? 3 : 1_000 + index)),
      steps,
    );
    expect(runs.length).toBeLessThan(20);
  });

  test("does not go on when the failure would hit every item", async () => {
    let runs = 0;
    const down = async () => {
      runs += 1;
      throw new Error("the database is down");
    };
    await expect(runInHalves([1, 2, 3, 4], { ...steps, run: down })).rejects.toThrow("the database is down");
    expect(runs).toBe(1);
  });
});

describe("parts by weight", () => {
  const weigh = (weight: number) => weight;

  test("are as full as can be, and one that is too heavy stands alone", () => {
    expect(partsByWeight([2, 3, 5, 1, 40, 4, 6], 10, weigh)).toEqual([[2, 3, 5], [1], [40], [4, 6]]);
    expect(partsByWeight([], 10, weigh)).toEqual([]);
    expect(partsByWeight([0, 0, 10, 0], 10, weigh)).toEqual([[0, 0, 10, 0]]);
  });

  test("hold everything once and in order, and never more than the most but where one item does", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(30)), fc.integer({ min: 1, max: 40 }), (weights, most) => {
        const parts = partsByWeight(weights, most, weigh);
        expect(parts.flat()).toEqual(weights);
        for (const part of parts) {
          const sum = part.reduce((all, weight) => all + weight, 0);
          expect(sum <= most || part.filter((weight) => weight > 0).length === 1).toBe(true);
        }
      }),
    );
  });
});
