import { expect, test } from "vitest";
import type { RefusedCalls } from "../../store/access/refused-calls.ts";
import { RefusalBook } from "./refusal-book.ts";

const START = new Date("2026-01-01T00:00:10Z");

function bookUnderTest() {
  const written: RefusedCalls[] = [];
  const lines: { fields: Record<string, unknown>; message: string }[] = [];
  const state = { now: START, isAway: false };
  const say = (fields: object, message: string) => void lines.push({ fields: { ...fields }, message });
  const book = new RefusalBook({
    clock: { now: () => state.now },
    log: { debug: say, info: say, warn: say, error: say },
    async write(counted) {
      if (state.isAway) throw new Error("away");
      written.push(...counted.map((row) => ({ ...row })));
    },
  });
  return { book, written, lines, state };
}

const call = { address: "192.0.2.1", name: "kim", method: "GET /api/v1/nodes", outcome: "refused" } as const;
const minute = new Date("2026-01-01T00:00:00Z");

test("many calls are one row, until a minute or a caller changes", async () => {
  const { book, written, state } = bookUnderTest();
  for (let n = 0; n < 1_000; n += 1) book.note(call);
  book.note({ ...call, address: null, name: null, outcome: "sign_in_failed" });
  state.now = new Date("2026-01-01T00:01:00Z");
  book.note(call);
  await book.flush();
  expect(written).toEqual([
    { ...call, minute, calls: 1_000, lastAt: START },
    { address: "", name: "", method: call.method, outcome: "sign_in_failed", minute, calls: 1, lastAt: START },
    { ...call, minute: state.now, calls: 1, lastAt: state.now },
  ]);
  await book.flush();
  expect(written).toHaveLength(3);
});

test("a caller with a new address for each call gets few rows, also across writes, and every call is counted", async () => {
  const { book, written } = bookUnderTest();
  for (let n = 0; n < 10_000; n += 1) {
    book.note({ ...call, address: `2001:db8::${n.toString(16)}` });
    if (n % 1_000 === 0) await book.flush();
  }
  book.note({ ...call, address: "2001:db8::0" });
  await book.flush();
  expect(new Set(written.map(({ address }) => address)).size).toBe(101);
  expect(written.reduce((sum, { calls }) => sum + calls, 0)).toBe(10_001);
  expect(written.filter(({ address }) => address === "*")[0]).toMatchObject({ name: "*", method: "*" });
});

test("what cannot be written is written later, once, and memory stays bounded", async () => {
  const { book, written, state } = bookUnderTest();
  state.isAway = true;
  book.note(call);
  await book.flush();
  book.note(call);
  state.isAway = false;
  await book.flush();
  expect(written).toEqual([{ ...call, minute, calls: 2, lastAt: START }]);

  state.isAway = true;
  for (let n = 0; n < 5_000; n += 1) {
    state.now = new Date(START.getTime() + n * 60_000);
    book.note(call);
    if (n % 100 === 0) await book.flush();
  }
  await book.flush();
  state.isAway = false;
  await book.flush();
  expect(written.length - 1).toBe(2_000);
  expect(written.at(-1)?.minute).toEqual(new Date("2026-01-04T11:19:00Z"));
});

test("the log has one line a minute, with those who tried most", () => {
  const { book, lines, state } = bookUnderTest();
  for (let n = 0; n < 50; n += 1) book.note(call);
  for (let n = 0; n < 9; n += 1)
    book.note({ ...call, address: `192.0.2.1${n}`, name: null, outcome: "sign_in_failed" });
  expect(lines).toEqual([]);
  state.now = new Date("2026-01-01T00:01:10Z");
  book.note(call);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({
    message: "calls were refused within a minute",
    fields: { refused: 50, failedSignIns: 9, addresses: 10 },
  });
  const most = lines[0]?.fields.most as unknown[] | undefined;
  expect(most?.[0]).toEqual({ ...call, calls: 50 });
  expect(most).toHaveLength(5);
});

test("when it ends, what is in hand is written", async () => {
  const { book, written } = bookUnderTest();
  const stop = new AbortController();
  const running = book.run(stop.signal);
  book.note(call);
  stop.abort();
  await running;
  expect(written).toHaveLength(1);
});
