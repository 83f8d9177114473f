import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { NodeIdentity } from "../../capabilities/cluster.ts";
import { describeContradiction, describeSeveral, matchNodes } from "../../capabilities/clusters/node-identity.ts";
import type { ListedNode } from "../../capabilities/node-list.ts";
import { indexNodes, matchNode } from "./node-match.ts";

const UUIDS = [
  "00112233-4455-6677-8899-aabbccddeeff",
  // The same in the other byte order.
  "33221100-5544-7766-8899-aabbccddeeff",
  "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
] as const;
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

test("the index finds what comparing each node with the machine finds", () => {
  fc.assert(
    fc.property(fc.array(anyNode, { maxLength: 6 }), anyIdentity, (nodes, identity) => {
      const plain = (match: ReturnType<typeof matchNode>) =>
        match.is === "one"
          ? ["one", match.by, match.node]
          : [match.is, new Set(match.is === "several" ? match.nodes : match.contradicting)];
      expect(plain(matchNode(indexNodes(nodes), identity))).toEqual(plain(matchNodes(nodes, identity)));
    }),
  );
});

const node = (name: string, marks: Partial<ListedNode>): ListedNode => ({
  name,
  ready: true,
  reason: "",
  unschedulable: false,
  systemUuid: null,
  serial: null,
  addresses: [],
  bootId: null,
  ...marks,
});
const machine: NodeIdentity = { systemUuid: UUIDS[0], serial: "S1", addresses: ["10.0.0.1"] };
const match = (...nodes: ListedNode[]) => {
  const found = matchNodes(nodes, machine);
  if (found.is === "one") return `${found.node.name} by ${found.by}`;
  return `${found.is}: ${(found.is === "several" ? found.nodes : found.contradicting).map(({ name }) => name).join(", ")}`;
};

describe("the node of a machine", () => {
  // biome-ignore format: a table is read by its columns
  test.each<[string, ListedNode[], string]>([
    ["is the one with its UUID, in either byte order", [node("a", { systemUuid: UUIDS[1] }), node("b", { systemUuid: UUIDS[2] })], "a by system_uuid"],
    ["is the one with its UUID before one with its serial", [node("a", { serial: "s1" }), node("b", { systemUuid: UUIDS[0] })], "b by system_uuid"],
    ["is the one with its serial where no UUID is known",   [node("a", { serial: "s1" })],                                     "a by serial"],
    ["is the one with its address where nothing else is",   [node("a", { addresses: ["10.0.0.1"] })],                          "a by address"],
    ["is never told by a name",                             [node("10.0.0.1", {})],                                            "none: "],
    ["is none of a stranger",                               [node("a", { systemUuid: UUIDS[2], addresses: ["10.0.0.9"] })],    "none: "],
    ["is doubted at its address with another UUID",         [node("a", { systemUuid: UUIDS[2], addresses: ["10.0.0.1"] })],    "none: a"],
    ["is doubted with its serial and another UUID",         [node("a", { systemUuid: UUIDS[2], serial: "S1" })],               "none: a"],
    ["is doubted at its address with another serial",       [node("a", { serial: "S2", addresses: ["10.0.0.1"] })],            "none: a"],
    ["is open where two have its UUID, whichever is Ready", [node("a", { systemUuid: UUIDS[0] }), node("b", { systemUuid: UUIDS[0], ready: false })], "several: a, b"],
    ["is the one at its address of two that have its UUID", [node("a", { systemUuid: UUIDS[0] }), node("b", { systemUuid: UUIDS[0], addresses: ["10.0.0.1"] })], "b by system_uuid"],
    ["is open where both of them have its address",         [node("a", { addresses: ["10.0.0.1"] }), node("b", { addresses: ["10.0.0.1"] })], "several: a, b"],
  ])("%s", (_, nodes, expected) => {
    expect(match(...nodes)).toBe(expected);
  });

  test("is named with what is wrong about it", () => {
    expect(describeSeveral("c1", [node("b", {}), node("a", {})], "system_uuid")).toBe(
      "cluster c1 has 2 nodes that are this machine by their system UUID: a, b; delete the stale one (kubectl delete node <name>)",
    );
    expect(describeContradiction("c1", node("a", { systemUuid: UUIDS[2], addresses: ["10.0.0.1"] }), machine)).toBe(
      `node a of c1 has the address 10.0.0.1 of this machine, but system UUID ${UUIDS[2]} and not ${UUIDS[0]}: find out which machine it is`,
    );
    expect(describeContradiction("c1", node("a", { serial: "S2", addresses: ["10.0.0.1"] }), machine)).toContain(
      "but serial S2 and not S1",
    );
  });
});
