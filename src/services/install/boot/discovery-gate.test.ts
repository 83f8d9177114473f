import { expect, test } from "vitest";
import { hours, minutes } from "../../../kernel/time/duration.ts";
import { DiscoveryGate } from "./discovery-gate.ts";

const STRANGER = "10.0.0.66";
const EXEMPT = "127.0.0.1";

function gateAt(start = 0) {
  let now = start;
  const gate = new DiscoveryGate({
    most: 100,
    perMinute: 5,
    perAddress: 2,
    isExempt: (address) => address === EXEMPT,
    placeOf: (address) => address.replace(/::.*/, "::/64"),
    clock: { monotonic: () => now },
    refused: () => {},
  });
  const takeTimes = (times: number, address: string) => Array.from({ length: times }, () => gate.take(address));
  return { takeTimes, pass: (ms: number) => (now += ms) };
}

test("one address brings only so many machines an hour, and others are not kept out by it", () => {
  const { takeTimes, pass } = gateAt();
  expect(takeTimes(3, STRANGER)).toEqual([undefined, undefined, "discovered_per_address"]);
  expect(takeTimes(1, "10.0.0.7")).toEqual([undefined]);
  pass(hours(1));
  expect(takeTimes(3, STRANGER)).toEqual([undefined, undefined, "discovered_per_address"]);
});

test("a host that has a whole network of IPv6 is one address", () => {
  const { takeTimes } = gateAt();
  const taken = [1, 2, 3].flatMap((n) => takeTimes(1, `2001:db8:0:1::${n}`));
  expect(taken).toEqual([undefined, undefined, "discovered_per_address"]);
});

test("all of them bring only so many a minute, also from addresses that have no limit of their own", () => {
  const { takeTimes, pass } = gateAt();
  expect(takeTimes(6, EXEMPT).at(-1)).toBe("discovered_per_minute");
  pass(minutes(1));
  expect(takeTimes(5, EXEMPT)).toEqual(Array(5).fill(undefined));
});

test("what one address may bring is not used up by another, however many there are", () => {
  const { takeTimes, pass } = gateAt();
  takeTimes(2, STRANGER);
  for (let other = 0; other < 20_000; other += 1) {
    if (other % 5 === 0) pass(minutes(1) / 1_000);
    if (other % 100 === 0) takeTimes(1, STRANGER);
    takeTimes(1, `10.1.${other >> 8}.${other & 255}`);
  }
  expect(takeTimes(1, STRANGER)).not.toEqual([undefined]);
});
