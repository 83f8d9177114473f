import { expect, test } from "vitest";
import { untilAborted } from "./until-aborted.ts";

test("passes everything on and ends with its source", async () => {
  async function* source() {
    yield 1;
    yield 2;
  }
  const seen: number[] = [];
  for await (const value of untilAborted(source(), new AbortController().signal)) seen.push(value);
  expect(seen).toEqual([1, 2]);
});

test("ends with the signal's reason while the source waits for something that never comes", async () => {
  const abort = new AbortController();
  async function* source() {
    yield 1;
    await new Promise(() => {});
  }
  const stream = untilAborted(source(), abort.signal);
  expect(await stream.next()).toEqual({ value: 1, done: false });
  const waiting = stream.next();
  abort.abort(new Error("stopping"));
  await expect(waiting).rejects.toThrow("stopping");
});

test("lets its source clean up when the reader leaves", async () => {
  const cleaned = Promise.withResolvers<string>();
  async function* source() {
    try {
      for (;;) yield 1;
    } finally {
      cleaned.resolve("cleaned");
    }
  }
  for await (const _ of untilAborted(source(), new AbortController().signal)) break;
  expect(await cleaned.promise).toBe("cleaned");
});

test("does not ask its source for anything once the signal is aborted", async () => {
  let asked = false;
  async function* source() {
    asked = true;
    yield 1;
  }
  await expect(untilAborted(source(), AbortSignal.abort(new Error("stopping"))).next()).rejects.toThrow("stopping");
  expect(asked).toBe(false);
});
