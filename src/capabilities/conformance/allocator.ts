import { beforeEach, describe, expect, test } from "vitest";
import type { AllocationOrder, Allocator } from "../fleet/allocator.ts";
import { aCall } from "./device-bench.ts";

/** An allocator that the test is beside; all that the bench tells comes from the allocator itself. */
export interface AllocatorBench {
  readonly allocator: Allocator;
  /** What it was asked for, the oldest first. */
  wishes(): Promise<
    readonly { readonly id: string; readonly wanted: "provisioned" | "released"; readonly force: boolean }[]
  >;
  /** How often it really did it, and not just answered that it had. */
  timesDone(id: string, wanted: "provisioned" | "released"): Promise<number>;
  /** It takes its time for the next wish that it has not heard before: this many answers say that it is not done yet. */
  isSlow(answers: number): Promise<void>;
  refusesNext(): Promise<void>;
  isBusyOnce(): Promise<void>;
}

let count = 0;
const anOrder = (): AllocationOrder => ({
  id: `fa-${++count}`,
  node: "fn-1",
  hostname: "gpu-1",
  tenant: "team-a",
});

/** What every allocator must do. */
export function describeAllocator(name: string, setUp: () => Promise<AllocatorBench>): void {
  describe(`allocator ${name}`, () => {
    let bench: AllocatorBench;
    beforeEach(async () => {
      bench = await setUp();
    });

    test("prepares a node and cleans it up, each once however often it is asked", async () => {
      const order = anOrder();
      const { allocator } = bench;
      for (const _ of [1, 2]) expect(await allocator.provision(order, aCall())).toMatchObject({ state: "done" });
      for (const _ of [1, 2])
        expect(await allocator.release({ ...order, force: false }, aCall())).toMatchObject({ state: "done" });
      expect(await bench.timesDone(order.id, "provisioned")).toBe(1);
      expect(await bench.timesDone(order.id, "released")).toBe(1);
    });

    test("says that it is not done yet, and is asked again", async () => {
      const order = anOrder();
      await bench.isSlow(2);
      const states: string[] = [];
      for (const _ of [1, 2, 3]) states.push((await bench.allocator.provision(order, aCall())).state);
      expect(states).toEqual(["in_progress", "in_progress", "done"]);
      expect(await bench.timesDone(order.id, "provisioned")).toBe(1);
    });

    test("is told of force", async () => {
      const order = anOrder();
      await bench.allocator.provision(order, aCall());
      await bench.allocator.release({ ...order, force: true }, aCall());
      expect((await bench.wishes()).at(-1)).toEqual({ id: order.id, wanted: "released", force: true });
    });

    test("takes what it does not know for released", async () => {
      expect(await bench.allocator.release({ ...anOrder(), force: false }, aCall())).toMatchObject({ state: "done" });
    });

    test("refuses for good, or is busy, and both can be told apart", async () => {
      await bench.refusesNext();
      await expect(bench.allocator.provision(anOrder(), aCall())).rejects.toMatchObject({ disposition: "fail" });
      await bench.isBusyOnce();
      await expect(bench.allocator.provision(anOrder(), aCall())).rejects.toMatchObject({ disposition: "retry" });
    });
  });
}
