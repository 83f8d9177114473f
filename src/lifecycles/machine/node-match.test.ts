import fc from "fast-check";
import { expect, test } from "vitest";
import type { NodeIdentity } from "../../capabilities/cluster.ts";
import type { ListedNode } from "../../capabilities/node-list.ts";
import { isSameUuid } from "../../capabilities/system-uuid.ts";
import { indexNodes, matchNode } from "./node-match.ts";

const UUIDS = [
  "00112233-4455-6677-8899-aabbccddeeff",
  // The same in the other byte order.
  "33221100-5544-7766-8899-aabbccddeeff",
  "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
];
const anyNode = fc.record<ListedNode>({
  name: fc.constantFrom("n1", "n2", "n3"),
  ready: fc.boolean(),
  reason: fc.constant(""),
  unschedulable: fc.boolean(),
  systemUuid: fc.constantFrom(null, ...UUIDS),
  serial: fc.constantFrom(null, "S1", "s1", "S2"),
  addresses: fc.subarray(["10.0.0.1", "10.0.0.2"]),
  bootId: fc.constant(null),
});
const anyIdentity = fc.record<NodeIdentity>({
  systemUuid: fc.constantFrom(null, ...UUIDS),
  serial: fc.constantFrom(null, "S1", "S2"),
  addresses: fc.subarray(["10.0.0.1", "10.0.0.2"]),
});

/** The rule, said without an index. */
function strengthOf(node: ListedNode, { systemUuid, serial, addresses }: NodeIdentity): number {
  if (node.systemUuid !== null && systemUuid !== null) return isSameUuid(node.systemUuid, systemUuid) ? 3 : 0;
  if (node.serial !== null && serial !== null) return node.serial.toLowerCase() === serial.toLowerCase() ? 2 : 0;
  return node.addresses.some((address) => addresses.includes(address)) ? 1 : 0;
}

test("the node is the one that the strongest mark tells, a Ready one first, and a contradiction is never matched", () => {
  fc.assert(
    fc.property(fc.array(anyNode, { maxLength: 6 }), anyIdentity, (nodes, identity) => {
      const strongest = Math.max(0, ...nodes.map((node) => strengthOf(node, identity)));
      const right = strongest === 0 ? [] : nodes.filter((node) => strengthOf(node, identity) === strongest);
      const found = matchNode(indexNodes(nodes), identity);
      expect(found === null ? right : right.includes(found)).toEqual(right.length === 0 ? [] : true);
      if (found) expect(found.ready).toBe(right.some(({ ready }) => ready));
    }),
  );
});

test("a name alone is no proof", () => {
  const node: ListedNode = {
    name: "m-1",
    ready: true,
    reason: "",
    unschedulable: false,
    systemUuid: null,
    serial: null,
    addresses: [],
    bootId: null,
  };
  expect(matchNode(indexNodes([node]), { systemUuid: null, serial: null, addresses: ["m-1"] })).toBeNull();
});
