import { describe, expect, test } from "vitest";
import { addressGroup } from "./client-address.ts";
import { clientOf } from "./forwarded.ts";

test.each([
  ["10.0.0.1", "10.0.0.1"],
  ["::ffff:10.0.0.1", "10.0.0.1"],
  ["::1", "0:0:0:0::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["2001:db8:0:0:ffff::9", "2001:db8:0:0::/64"],
  ["2001:0db8:0:1::9", "2001:db8:0:1::/64"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
])("%s counts as %s", (address, group) => expect(addressGroup(address)).toBe(group));

describe("where a request comes from", () => {
  const isProxy = (address: string) => address.startsWith("10.");

  test.each([
    ["nobody is believed who is no proxy", "192.0.2.1", "203.0.113.9", "192.0.2.1"],
    ["a proxy says whom it was called by", "10.0.0.1", "203.0.113.9", "203.0.113.9"],
    ["what the caller itself put before counts for nothing", "10.0.0.1", "198.51.100.1, 203.0.113.9", "203.0.113.9"],
    ["several proxies in a row", "10.0.0.1", "203.0.113.9, 10.0.0.2", "203.0.113.9"],
    ["proxies alone", "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["with ports", "10.0.0.1", "203.0.113.9:4711", "203.0.113.9"],
    ["IPv6 with a port", "10.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"],
    ["what is no address ends the list", "10.0.0.1", "203.0.113.9, unknown", "10.0.0.1"],
    ["an empty header", "10.0.0.1", "", "10.0.0.1"],
  ])("%s", (_, connected, header, client) => expect(clientOf(connected, header, isProxy)).toBe(client));

  test("without a header it is the other end", () => {
    expect(clientOf("10.0.0.1", undefined, isProxy)).toBe("10.0.0.1");
    expect(clientOf(null, "203.0.113.9", isProxy)).toBe(null);
  });
});
