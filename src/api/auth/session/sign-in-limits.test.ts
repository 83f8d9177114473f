import { describe, expect, test } from "vitest";
import type { Clock } from "../../../kernel/time/clock.ts";
import { minutes } from "../../../kernel/time/duration.ts";
import { OneTimeCodes } from "./one-time-codes.ts";
import { SignInThrottle } from "./sign-in-throttle.ts";

function clockAtZero() {
  let now = 0;
  const clock = { monotonic: () => now, now: () => new Date(now) } as Clock;
  return { clock, pass: (ms: number) => (now += ms) };
}

describe("a code of a link", () => {
  test("is good once", () => {
    const codes = new OneTimeCodes(clockAtZero().clock);
    const code = codes.issue("mw_token", minutes(1));
    expect(codes.redeem(code)).toBe("mw_token");
    expect(codes.redeem(code)).toBeUndefined();
    expect(codes.redeem("other")).toBeUndefined();
  });

  test("is good for its time alone", () => {
    const { clock, pass } = clockAtZero();
    const codes = new OneTimeCodes(clock);
    const code = codes.issue("mw_token", minutes(1));
    pass(minutes(1));
    expect(codes.redeem(code)).toBeUndefined();
  });
});

describe("failed sign-ins", () => {
  test("keep their own address out for the rest of a minute, and no other", () => {
    const { clock, pass } = clockAtZero();
    const throttle = new SignInThrottle(clock);
    for (let n = 0; n < 10; n += 1) {
      throttle.admit("192.0.2.1");
      throttle.failed("192.0.2.1");
    }
    expect(() => throttle.admit("192.0.2.1")).toThrow("try again in 60 s");
    expect(() => throttle.admit("192.0.2.2")).not.toThrow();
    pass(minutes(1));
    expect(() => throttle.admit("192.0.2.1")).not.toThrow();
  });

  test("of very many addresses keep nobody else out", () => {
    const throttle = new SignInThrottle(clockAtZero().clock);
    for (let n = 0; n < 2_000; n += 1) throttle.failed(`192.0.${n % 200}.1`);
    expect(() => throttle.admit("192.0.7.1")).toThrow("too many failed sign-ins");
    expect(() => throttle.admit("198.51.100.1")).not.toThrow();
  });
});
