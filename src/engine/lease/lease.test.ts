import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { seconds } from "../../kernel/time/duration.ts";
import { inDatabase, LEASE, Lease, LONGEST_CALL, STOCK_LEASE } from "./lease.ts";

function setUp() {
  let time = 1_000;
  const clock = { now: () => new Date(), monotonic: () => time };
  const lease = new Lease({ kind: "widget", id: "w", epoch: 1, failures: 0 }, clock, time);
  const stop = new AbortController();
  const call = lease.callContext(stop.signal);
  return { lease, stop, call, pass: (ms: number) => (time += ms), now: () => time };
}

describe("a lease", () => {
  test("lasts longer in the database than for its owner, by the longest call and more", () => {
    expect(inDatabase(STOCK_LEASE) - LEASE).toBeGreaterThanOrEqual(LONGEST_CALL);
  });

  test("counts from before it was asked for", () => {
    const { lease, pass } = setUp();
    expect(lease.remaining).toBe(LEASE);
    pass(5_000);
    expect(lease.remaining).toBe(LEASE - 5_000);
    lease.renewed(4_000);
    expect(lease.remaining).toBe(4_000 + LEASE - 6_000);
  });

  test("gives a device call what it wants, but no more than the longest call and what is left", () => {
    const { call, pass } = setUp();
    expect(call.mayTouchDevice(seconds(2))).toBe(seconds(2));
    expect(call.mayTouchDevice(seconds(60))).toBe(LONGEST_CALL);
    pass(LEASE - 1_500);
    expect(call.mayTouchDevice(seconds(60))).toBe(1_500);
  });

  test("gives a device call whole milliseconds, and never more than is left: timers take nothing else", () => {
    const { call, pass } = setUp();
    pass(LEASE - 1_500.4);
    expect(call.mayTouchDevice(seconds(60))).toBe(1_500);
  });

  test("allows no device call once it is over, and stops the work under way", () => {
    const { call, lease, pass } = setUp();
    pass(LEASE);
    expect(() => call.mayTouchDevice(seconds(1))).toThrow("the lease is over, so the device must not be touched");
    expect(call.signal.aborted).toBe(true);
    expect(lease.signal.aborted).toBe(true);
  });

  test("that is lost ends the work under way", () => {
    const { call, lease } = setUp();
    lease.lose();
    expect(call.signal.reason).toMatchObject({ disposition: "retry" });
    expect(() => call.mayTouchDevice(seconds(1))).toThrow("the lease is over");
  });

  test("passes a stop of the process on to the work under way", () => {
    const { call, lease, stop } = setUp();
    stop.abort(new Error("shutting down"));
    expect(call.signal.reason).toEqual(new Error("shutting down"));
    expect(lease.signal.aborted).toBe(false);
  });

  describe("whose pass is interrupted", () => {
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ["setTimeout"] });
    });
    afterEach(() => {
      vi.useRealTimers();
    });

    test("is kept, lets nothing more leave for a device, and stops the work as soon as it wants to send something", () => {
      const { call, lease } = setUp();
      lease.interrupt("run r is to be ended");
      expect(call.signal.aborted).toBe(false);
      expect(() => call.mayTouchDevice(seconds(1))).toThrow("run r is to be ended");
      expect(call.signal.reason).toMatchObject({ kind: "cancelled" });
      expect(lease.remaining).toBe(LEASE);
    });

    test("gives what is on its way a second to be answered, and then cuts it off", () => {
      const { call, lease } = setUp();
      lease.interrupt("run r is to be ended");
      vi.advanceTimersByTime(999);
      expect(call.signal.aborted).toBe(false);
      vi.advanceTimersByTime(1);
      expect(call.signal.aborted).toBe(true);
      expect(lease.signal.aborted).toBe(true);
    });
  });
});
