import { expect, test } from "vitest";
import { RateLimiter } from "./rate-limiter.ts";

function limiterUnderTest(perSecond: number, burst: number) {
  const time = { now: 0 };
  const limiter = new RateLimiter({ perSecond, burst, clock: { monotonic: () => time.now } });
  const admitted = (key: string, calls: number) =>
    Array.from({ length: calls }, () => limiter.take(key)).filter((wait) => wait === undefined).length;
  return { time, limiter, admitted };
}

test("admits a burst, then as many as the rate, and says when the next one is admitted", () => {
  const { time, limiter, admitted } = limiterUnderTest(10, 50);
  expect(admitted("kim", 80)).toBe(50);
  expect(limiter.take("kim")).toBe(100);
  time.now += 100;
  expect(admitted("kim", 2)).toBe(1);
  time.now += 60_000;
  expect(admitted("kim", 80)).toBe(50);
});

test("counts each apart, and looking counts nothing", () => {
  const { limiter, admitted } = limiterUnderTest(1, 2);
  expect(admitted("a", 5)).toBe(2);
  expect([limiter.look("b"), limiter.look("b"), limiter.look("b")]).toEqual([undefined, undefined, undefined]);
  expect(limiter.look("a")).toBe(1_000);
  expect(admitted("b", 5)).toBe(2);
  expect(limiter.fullest()).toBe(2);
});

test("those who are refused do not wait longer for having tried", () => {
  const { time, limiter, admitted } = limiterUnderTest(1, 1);
  expect(admitted("a", 1_000)).toBe(1);
  time.now += 1_000;
  expect(limiter.take("a")).toBeUndefined();
});

test("a new key for each call does not grow the memory, and does not free who was just refused", () => {
  const { limiter, admitted } = limiterUnderTest(1, 1);
  admitted("busy", 2);
  for (let n = 0; n < 100_000; n += 1) {
    limiter.take(`address ${n}`);
    if (n % 1_000 === 0) expect(limiter.take("busy")).toBeDefined();
  }
});
