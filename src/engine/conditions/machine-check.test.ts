import { describe, expect, test } from "vitest";
import { retryable } from "../../../test/support/failures.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import { aCall, aTarget } from "../../capabilities/conformance/device-bench.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { ListedNode, NodeList } from "../../capabilities/node-list.ts";
import type { Provider } from "../../capabilities/provider.ts";
import { silentLog } from "../../kernel/log.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import { seconds } from "../../kernel/time/duration.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { checkMachine, inspectMachine, type Place } from "./machine-check.ts";
import { NodeLists } from "./node-lists.ts";

const READY: ListedNode = {
  name: "n1",
  ready: true,
  reason: "",
  unschedulable: false,
  systemUuid: "u-1",
  serial: null,
  addresses: [],
  bootId: "b-2",
};
const SILENT: ListedNode = { ...READY, ready: false };
/** Of a boot of which nobody has heard yet. */
const MOVED: ListedNode = { ...READY, bootId: "b-3" };
const LEFT_OVER: ListedNode = { ...READY, ready: false, bootId: "b-1" };
/** As it was proven last, in whichever cluster that was. */
const MACHINE = {
  id: "m-1",
  spec: { serial: "S1", ssh: null },
  facts: { systemUuid: "u-1", serial: null, bootId: "b-2" },
} as unknown as Machine;
const GONE = { is: "nowhere", reason: "NoCluster", message: "there is no such cluster" } as const;
const NOWHERE = { is: "nowhere", reason: "NoEndpoint", message: "" } as const;

type Shows = ListedNode | readonly ListedNode[] | null | "silent" | "shut" | "not on record";

/** What a check says of the machine's node when its own cluster shows the one, and the one that its owner names the other. */
async function checkCluster(own: Shows, wanted: Shows): Promise<string> {
  const shown = new Map<string, Shows>([
    ["own", own],
    ["wanted", wanted],
  ]);
  const nodes: NodeList = {
    async listNodes({ name }) {
      const node = shown.get(name);
      if (node === "silent") throw retryable("no answer");
      if (node === "shut") throw new DeviceFailure("forbidden", "cluster", "forbidden");
      return node && typeof node === "object" ? [node].flat() : [];
    },
    listWorkloads: async () => [],
    listGoing: async () => [],
  };
  const placeOf = (name: string): Place<ClusterTarget> =>
    shown.get(name) === "not on record"
      ? GONE
      : { is: "at", target: { name, apiUrl: `https://${name}`, ca: null, credentials: { token: "t" } } };
  const { node } = await checkMachine({
    machine: MACHINE,
    places: {
      provider: { name: "test", can: { nodes } },
      bmc: NOWHERE,
      ssh: NOWHERE,
      clusters: [placeOf("own"), placeOf("wanted")],
      alerts: [],
    },
    nodes: new NodeLists({ clock: systemClock, log: silentLog, freshFor: seconds(1) }),
    call: aCall(),
    clock: systemClock,
  });
  if (node.is === "missed") return `missed: ${node.reason} ${node.cause?.code}`;
  if (node.is !== "seen") return node.is;
  if (node.what.doubt) return `${node.what.cluster}: ${node.what.doubt.reason} ${node.what.doubt.message}`;
  return `${node.what.cluster}: ${wordFor(node.what.node)}`;
}

function wordFor(node: ListedNode | null): string {
  if (node === null) return "none";
  if (node.ready) return "ready";
  return node.bootId === SILENT.bootId ? "silent" : "left over";
}

describe("the node of a machine whose owner names another cluster than its own", () => {
  test.each<[what: string, own: Shows, wanted: Shows, seen: string]>([
    ["in its own first", READY, READY, "own: ready"],
    ["in the other one where its own has none", null, READY, "wanted: ready"],
    ["in the other one where its own has but a left-over one", LEFT_OVER, READY, "wanted: ready"],
    [
      "in the other one where people moved it to, although its own still has the node that was proven last",
      SILENT,
      MOVED,
      "wanted: ready",
    ],
    ["in its own where it is silent and the other one has none", SILENT, null, "own: silent"],
    ["in its own where it is silent in both", SILENT, SILENT, "own: silent"],
    ["in the other one where it is silent and its own has but a left-over one", LEFT_OVER, SILENT, "wanted: silent"],
    ["nowhere while it is silent in its own and the other one does not answer", SILENT, "silent", "unknown"],
    ["in its own where neither has a live one", LEFT_OVER, LEFT_OVER, "own: left over"],
    ["in its own where neither has any", null, null, "own: none"],
    ["in the other one where its own is not on record any more", "not on record", null, "wanted: none"],
    ["in its own where the other one is not on record", null, "not on record", "own: none"],
    ["nowhere while its own does not answer", "silent", READY, "unknown"],
    ["nowhere while its own keeps us out", "shut", READY, "missed: CredentialsRefused forbidden"],
    [
      "in vain where two of its own are it",
      [READY, { ...SILENT, name: "n2" }],
      null,
      "own: SeveralNodes cluster own has 2 nodes that are this machine by their system UUID: n1, n2; delete the stale one (kubectl delete node <name>)",
    ],
    [
      "in vain where another machine has its serial",
      { ...READY, systemUuid: "u-2", serial: "S1" },
      null,
      "own: NodeContradicts node n1 of own has the serial of this machine, but system UUID u-2 and not u-1: find out which machine it is",
    ],
    [
      "in the other one where another machine has its serial in its own",
      { ...READY, systemUuid: "u-2", serial: "S1" },
      READY,
      "wanted: ready",
    ],
    ["nowhere while the other one does not answer and its own has none", null, "silent", "unknown"],
  ])("is looked for %s", async (_, own, wanted, seen) => {
    expect(await checkCluster(own, wanted)).toBe(seen);
  });
});

test("what a machine from the factory was before, and of which cluster, is not known of it any more", async () => {
  const machine = {
    identify: async () => ({ serial: "S1", systemUuid: "u-1", macs: [], vendor: "v", model: "m" }),
    readFirmware: async () => [],
  };
  const facts = await inspectMachine({
    machine: MACHINE,
    places: {
      provider: { name: "test", can: { system: machine as unknown as NonNullable<Provider["can"]["system"]> } },
      bmc: { is: "at", target: aTarget() },
      ssh: NOWHERE,
      clusters: [],
      alerts: [],
    },
    nodes: new NodeLists({ clock: systemClock, log: silentLog, freshFor: seconds(1) }),
    call: aCall(),
    clock: systemClock,
  });
  expect(facts).toMatchObject({ serial: "S1", sshHostKey: null, bootId: null, joinedCluster: null });
});
