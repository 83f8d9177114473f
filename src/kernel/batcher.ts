/**
 * Collects single calls into batches: whatever arrives while the earlier batches are under way goes into the next one.
 * There is no timer: an idle batcher starts at once, a busy one fills up by itself.
 */
export interface Batcher<In, Out> {
  submit(item: In): Promise<Out>;
}

export interface BatcherOptions<In, Out> {
  readonly most: number;
  readonly atOnce: number;
  /** Answers in the order of the items. */
  readonly run: (items: readonly In[]) => Promise<readonly Out[]>;
}

interface Waiting<In, Out> {
  readonly item: In;
  readonly resolve: (out: Out) => void;
  readonly reject: (error: unknown) => void;
}

export function createBatcher<In, Out>({ most, atOnce, run }: BatcherOptions<In, Out>): Batcher<In, Out> {
  const queue: Waiting<In, Out>[] = [];
  let underWay = 0;

  async function runOne(batch: readonly Waiting<In, Out>[]): Promise<void> {
    try {
      const answers = await run(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, index) => {
        resolve(answers[index] as Out);
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  function pump(): void {
    while (underWay < atOnce && queue.length > 0) {
      underWay += 1;
      void runOne(queue.splice(0, most)).finally(() => {
        underWay -= 1;
        pump();
      });
    }
  }

  return {
    submit(item) {
      return new Promise((resolve, reject) => {
        queue.push({ item, resolve, reject });
        // A tick later, so that everything submitted in this one travels together.
        if (queue.length === 1 && underWay < atOnce) queueMicrotask(pump);
      });
    },
  };
}

/**
 * Runs a batch, and by halves when it fails for what is in it, until the one item that fails stands alone. `isOfTheItem` tells
 * such failures from those that would hit every item alike, which go to the caller.
 */
export async function runInHalves<In, Out>(
  items: readonly In[],
  steps: {
    readonly run: (items: readonly In[]) => Promise<readonly Out[]>;
    readonly isOfTheItem: (error: unknown) => boolean;
    readonly alone: (item: In, error: unknown) => Promise<Out>;
  },
): Promise<readonly Out[]> {
  try {
    return await steps.run(items);
  } catch (error) {
    if (!steps.isOfTheItem(error)) throw error;
    const [first] = items;
    if (items.length === 1 && first !== undefined) return [await steps.alone(first, error)];
    const half = Math.ceil(items.length / 2);
    return [...(await runInHalves(items.slice(0, half), steps)), ...(await runInHalves(items.slice(half), steps))];
  }
}

/** Cuts a batch into parts whose weights together are at most so much, in their order; an item that is heavier alone is a part of its own. */
export function partsByWeight<T>(items: readonly T[], most: number, weigh: (item: T) => number): T[][] {
  const parts: T[][] = [];
  let left = 0;
  for (const item of items) {
    const weight = weigh(item);
    const part = parts.at(-1);
    if (part === undefined || weight > left) {
      parts.push([item]);
      left = most - weight;
    } else {
      part.push(item);
      left -= weight;
    }
  }
  return parts;
}
