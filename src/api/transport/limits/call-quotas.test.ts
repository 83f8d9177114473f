import { expect, test } from "vitest";
import { silentLog } from "../../../kernel/log.ts";
import { CallQuotas } from "./call-quotas.ts";
import { LimitLedger } from "./limit-ledger.ts";

function quotasUnderTest() {
  const refused: string[] = [];
  const ledger = new LimitLedger({ log: silentLog, refused: (limit) => refused.push(limit) });
  const rules = {
    requestsPerCaller: 4,
    requestsPerAddress: 2,
    callsPerCaller: 2,
    streamsPerCaller: 3,
    streamsPerAddress: 1,
  };
  const isExempt = (address: string) => address === "127.0.0.1";
  const quotas = new CallQuotas({ ...rules, isExempt }, ledger, { monotonic: () => 0 });
  const admitted = (who: { name: string | null; address: string | null }, calls: number) => {
    let count = 0;
    try {
      for (; count < calls; count += 1) quotas.request(who);
    } catch (error) {
      expect(error).toMatchObject({ kind: "exhausted" });
    }
    return count;
  };
  return { quotas, admitted, refused, ledger };
}

test("requests are counted by who has signed in, else by where they come from", () => {
  const { admitted, refused, ledger } = quotasUnderTest();
  expect(admitted({ name: "kim", address: "192.0.2.1" }, 100)).toBe(20);
  expect(admitted({ name: "kim", address: "192.0.2.2" }, 100)).toBe(0);
  expect(admitted({ name: "pat", address: "192.0.2.1" }, 100)).toBe(20);
  expect(admitted({ name: null, address: "192.0.2.1" }, 100)).toBe(10);
  expect(admitted({ name: null, address: "2001:db8::1" }, 100)).toBe(10);
  expect(admitted({ name: null, address: "2001:db8::2" }, 100)).toBe(0);
  expect(admitted({ name: null, address: "127.0.0.1" }, 100)).toBe(100);
  expect(admitted({ name: "local", address: "127.0.0.1" }, 100)).toBe(20);
  expect(new Set(refused)).toEqual(new Set(["requests_per_caller", "requests_per_address"]));
  expect(ledger.readings()).toContainEqual({ limit: "requests_per_caller", current: 20, most: 20 });
});

test("says when to call again, and how the limit is raised", () => {
  const { quotas, admitted } = quotasUnderTest();
  const kim = { name: "kim", address: null };
  admitted(kim, 20);
  expect(() => quotas.request(kim)).toThrow(
    expect.objectContaining({
      message: "limit reached: more than 4 requests a second from 'kim'",
      detail: { retryAfterMs: 250, next: expect.stringContaining("limits.requests_per_caller") },
    }),
  );
});

test("a call keeps its place until it is over; streams, and calls that nobody signed in for, take none", () => {
  const { quotas, refused, ledger } = quotasUnderTest();
  const kim = { name: "kim", address: "192.0.2.1" };
  const [first] = [quotas.call(kim), quotas.call(kim)];
  quotas.stream(kim);
  expect(() => quotas.call(kim)).toThrow(
    expect.objectContaining({
      message: "limit reached: 2 calls are under way from 'kim' already",
      detail: { retryAfterMs: 1_000, next: expect.stringContaining("limits.calls_per_caller") },
    }),
  );
  expect(ledger.readings()).toContainEqual({ limit: "calls_per_caller", current: 2, most: 2 });
  quotas.call({ name: "pat", address: "192.0.2.1" });
  for (let n = 0; n < 10; n += 1) quotas.call({ name: null, address: "192.0.2.1" });
  first();
  first();
  quotas.call(kim);
  expect(() => quotas.call(kim)).toThrow("limit reached");
  expect(refused).toEqual(["calls_per_caller", "calls_per_caller"]);
});

test("a stream keeps its place until it ends, once", () => {
  const { quotas, refused } = quotasUnderTest();
  const kim = { name: "kim", address: null };
  const [first] = [quotas.stream(kim), quotas.stream(kim), quotas.stream(kim)];
  expect(() => quotas.stream(kim)).toThrow("3 streams are open from 'kim' already");
  first();
  first();
  quotas.stream(kim);
  expect(() => quotas.stream(kim)).toThrow("limit reached");
  const stranger = { name: null, address: "192.0.2.1" };
  quotas.stream(stranger);
  expect(() => quotas.stream(stranger)).toThrow("1 streams are open from this address already");
  expect(refused).toEqual(["streams_per_caller", "streams_per_caller", "streams_per_address"]);
});
