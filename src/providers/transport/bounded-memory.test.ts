import { expect, test, vi } from "vitest";
import { BoundedMemory } from "./bounded-memory.ts";

test("forgets what was used longest ago when it is full, and says what", () => {
  const onForget = vi.fn();
  const memory = new BoundedMemory<number>(2, onForget);
  memory.set("a", 1);
  memory.set("b", 2);
  memory.get("a");
  memory.set("c", 3);
  expect(memory.entries()).toEqual([
    ["a", 1],
    ["c", 3],
  ]);
  expect(onForget).toHaveBeenCalledExactlyOnceWith(2, "b");
});

test("replacing a value forgets the old one, setting the same one again does not", () => {
  const onForget = vi.fn();
  const memory = new BoundedMemory<object>(2, onForget);
  const first = {};
  memory.set("a", first);
  memory.set("a", first);
  expect(onForget).not.toHaveBeenCalled();
  memory.set("a", {});
  expect(onForget).toHaveBeenCalledExactlyOnceWith(first, "a");
});

test("clearing forgets all", () => {
  const onForget = vi.fn();
  const memory = new BoundedMemory<number>(5, onForget);
  memory.set("a", 1);
  memory.set("b", 2);
  memory.clear();
  expect(memory.size).toBe(0);
  expect(onForget).toHaveBeenCalledTimes(2);
});
