import { describe, expect, test } from "vitest";
import { final } from "../../../test/support/failures.ts";
import { NOTHING_KNOWN } from "../../../test/support/unknown-machine.ts";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { Cluster, ClusterNode, RefusedEviction } from "../../capabilities/cluster.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import { aCall } from "../../capabilities/conformance/device-bench.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { AppError } from "../../kernel/errors.ts";
import { parseMachineId } from "../../kernel/ids.ts";
import type { Outcome } from "../../kernel/outcome.ts";
import { minutes } from "../../kernel/time/duration.ts";
import type { Condition } from "./conditions.ts";
import { type MachineContext, machineHandlers } from "./handlers.ts";
import type { Machine, MachineFacts } from "./machine.ts";

const TARGET: ClusterTarget = { name: "c1", apiUrl: "https://10.0.0.1:6443", ca: null, credentials: { token: "t" } };
const BMC: BmcTarget = {
  address: "10.0.0.9",
  port: 443,
  scheme: "https",
  username: "u",
  password: "p",
  trust: { mode: "ca" },
};
const DRAINED: Condition = {
  type: "Drained",
  status: true,
  reason: "NodeDrained",
  message: "",
  lastTransition: new Date(0),
};

/** A cluster of one node, as an API server would keep it. */
class OneNode {
  unschedulable = false;
  cordonedByUs = false;
  pods = ["d/a", "d/b"];
  refused: RefusedEviction[] = [];
  exists = true;
  readonly cordons: boolean[] = [];

  readonly cluster: Pick<Cluster, "findNode" | "setSchedulable" | "drain"> = {
    findNode: async () => (this.exists ? this.#node() : undefined),
    setSchedulable: async (_target, _name, schedulable) => {
      this.cordons.push(!schedulable);
      this.unschedulable = !schedulable;
      this.cordonedByUs = !schedulable;
    },
    drain: async () => {
      const remaining = this.pods;
      if (this.refused.length === 0) this.pods = this.pods.slice(1);
      return { remaining, refused: this.refused };
    },
  };

  #node(): ClusterNode {
    return {
      name: "n1",
      uid: "1",
      ready: true,
      reason: "",
      unschedulable: this.unschedulable,
      cordonedByUs: this.cordonedByUs,
      systemUuid: "u-1",
      bootId: null,
      kubeletVersion: null,
      matchedBy: "system_uuid",
    };
  }
}

const machineIn = (
  name: "MAINTENANCE" | "READY" | "IN_SERVICE" | "FACTORY_READY",
  facts: Partial<MachineFacts> = {},
  { drain = true, conditions = [] }: { drain?: boolean; conditions?: Condition[] } = {},
): Machine => ({
  id: parseMachineId("m-1", "id"),
  labels: {},
  spec: {
    provider: "datacenter",
    serial: "S1",
    macs: [],
    rack: null,
    slot: null,
    location: null,
    customerId: null,
    targetCluster: "c1",
    ssh: null,
    bmc: null,
  },
  facts: { ...NOTHING_KNOWN, ...facts },
  conditions,
  activeRunId: null,
  state: { name, ...(name === "MAINTENANCE" && drain && { drain }) },
  stateSince: new Date(0),
  stateVersion: 1,
  outcome: null,
  version: 1,
  basis: 1,
});

const contextOf = (node: OneNode, target: ClusterTarget | undefined = TARGET): MachineContext => ({
  call: aCall(),
  provider: { name: "test", can: { cluster: node.cluster as Cluster } },
  cluster: async () => target,
  bmc: async () => BMC,
});
const noCluster = (node: OneNode): MachineContext => ({ ...contextOf(node), cluster: async () => undefined });
const reasonOf = (outcome: Outcome): string => (outcome.type === "waiting" ? outcome.reason : outcome.type);
const { MAINTENANCE, READY, IN_SERVICE } = machineHandlers;
if (!MAINTENANCE || !READY || !IN_SERVICE) throw new Error("a handler is missing");
const CORDONED = { cordoned: { cluster: "c1", node: "n1" } };

describe("in MAINTENANCE that somebody asked for", () => {
  test("what may be ours to undo is on record before the node is cordoned", async () => {
    const node = new OneNode();
    const first = await MAINTENANCE(machineIn("MAINTENANCE"), contextOf(node));
    expect(first.facts).toEqual(CORDONED);
    expect(node.cordons).toEqual([]);
    const second = await MAINTENANCE(machineIn("MAINTENANCE", CORDONED), contextOf(node));
    expect(node.cordons).toEqual([true]);
    expect(reasonOf(second)).toBe("node n1 of c1: 2 pods remain: d/a, d/b");
  });

  test("what a disruption budget keeps there is named, with what the cluster says", async () => {
    const node = new OneNode();
    const words = "Cannot evict pod as it would violate the pod's disruption budget.";
    node.refused = [
      { pod: "d/a", by: "disruption_budget", why: words },
      { pod: "d/b", by: "cluster", why: "too many requests" },
    ];
    const outcome = await MAINTENANCE(machineIn("MAINTENANCE", CORDONED), contextOf(node));
    expect(reasonOf(outcome)).toBe(
      `node n1 of c1: 2 pods remain: d/a, d/b; a disruption budget keeps d/a (${words}); the cluster does not let go now of d/b (too many requests)`,
    );
  });

  test("it goes on where it was after a crash, without cordoning twice", async () => {
    const node = new OneNode();
    const machine = machineIn("MAINTENANCE", CORDONED);
    for (let look = 0; look < 2; look += 1) await MAINTENANCE(machine, contextOf(node));
    const last = await MAINTENANCE(machine, contextOf(node));
    expect(node.cordons).toEqual([true]);
    expect(reasonOf(last)).toMatch(/is drained; the next check of the machine confirms it/);
  });

  test("a node that somebody else cordoned is emptied and not marked as ours", async () => {
    const node = new OneNode();
    node.unschedulable = true;
    const outcome = await MAINTENANCE(machineIn("MAINTENANCE"), contextOf(node));
    expect(outcome.facts).toBeUndefined();
    expect(node.cordons).toEqual([]);
    expect(reasonOf(outcome)).toMatch(/2 pods remain/);
  });

  test("once it is proven nothing is asked of the cluster", async () => {
    const node = new OneNode();
    const outcome = await MAINTENANCE(machineIn("MAINTENANCE", {}, { conditions: [DRAINED] }), contextOf(node));
    expect(outcome.type).toBe("nothing");
    expect(node.pods).toHaveLength(2);
  });

  test("without a cluster, or without a node in it, there is nothing to drain", async () => {
    const node = new OneNode();
    expect((await MAINTENANCE(machineIn("MAINTENANCE"), noCluster(node))).type).toBe("nothing");
    node.exists = false;
    expect(reasonOf(await MAINTENANCE(machineIn("MAINTENANCE"), contextOf(node)))).toMatch(/no node to drain/);
  });
});

test("a machine that a failed run left in MAINTENANCE is not drained: nobody asked for it", async () => {
  const node = new OneNode();
  const outcome = await MAINTENANCE(machineIn("MAINTENANCE", {}, { drain: false }), contextOf(node));
  expect(outcome.type).toBe("nothing");
  expect(node.pods).toHaveLength(2);
});

describe.each(["READY", "IN_SERVICE"] as const)("in %s", (phase) => {
  const handBack = machineHandlers[phase];
  if (!handBack) throw new Error("the handler is missing");

  test("what we cordoned is uncordoned once, and then forgotten", async () => {
    const node = new OneNode();
    Object.assign(node, { unschedulable: true, cordonedByUs: true });
    const outcome = await handBack(machineIn(phase, CORDONED), contextOf(node));
    expect(node.cordons).toEqual([false]);
    expect(outcome).toMatchObject({ type: "nothing", facts: { cordoned: null } });
    await handBack(machineIn(phase), contextOf(node));
    expect(node.cordons).toEqual([false]);
  });

  test("what somebody else cordoned meanwhile is left alone", async () => {
    const node = new OneNode();
    node.unschedulable = true;
    const outcome = await handBack(machineIn(phase, CORDONED), contextOf(node));
    expect(node.cordons).toEqual([]);
    expect(outcome.facts).toEqual({ cordoned: null });
  });

  test("a cluster that is not on record any more, or a node that is gone, leaves nothing to do", async () => {
    const node = new OneNode();
    expect((await handBack(machineIn(phase, CORDONED), noCluster(node))).facts).toEqual({ cordoned: null });
    node.exists = false;
    expect((await handBack(machineIn(phase, CORDONED), contextOf(node))).facts).toEqual({ cordoned: null });
  });
});

describe.each(["FACTORY_READY", "READY", "IN_SERVICE"] as const)("in %s after its return", (phase) => {
  const tidyUp = machineHandlers[phase];
  if (!tidyUp) throw new Error("the handler is missing");
  const LIT = { locatorLit: true };
  const withLocator = (set: () => Promise<void>): MachineContext => ({
    ...contextOf(new OneNode()),
    provider: { name: "test", can: { locator: { setLocator: set, readLocator: async () => "unknown" } } },
  });

  test("the locator that the RMA lit is put out once", async () => {
    const lights: string[] = [];
    const context = withLocator(async () => void lights.push("dark"));
    const outcome = await tidyUp(machineIn(phase, LIT), context);
    expect(outcome).toMatchObject({ type: "nothing", facts: { locatorLit: false } });
    expect(lights).toEqual(["dark"]);
    await tidyUp(machineIn(phase), context);
    expect(lights).toEqual(["dark"]);
  });

  test("a BMC that is silent is asked again later; one that has no such light, or refuses, is left alone", async () => {
    const failing = (code: "unreachable" | "refused_by_device") =>
      withLocator(async () => {
        throw new DeviceFailure(code, "bmc", "no", { disposition: "retry" });
      });
    const silent = await tidyUp(machineIn(phase, LIT), failing("unreachable"));
    expect(silent).toMatchObject({ type: "nothing", after: minutes(15) });
    expect(silent.facts).toBeUndefined();
    const put = { type: "nothing", facts: { locatorLit: false } };
    expect(await tidyUp(machineIn(phase, LIT), failing("refused_by_device"))).toMatchObject(put);
    expect(await tidyUp(machineIn(phase, LIT), contextOf(new OneNode()))).toMatchObject(put);
    const nowhere = async () => {
      throw final("machine m-1 has no BMC endpoint");
    };
    expect(await tidyUp(machineIn(phase, LIT), { ...failing("refused_by_device"), bmc: nowhere })).toMatchObject(put);
  });

  test.each(["unavailable", "deadline_exceeded"] as const)(
    "a light is not taken for dark because the database was %s when the way to it was asked for",
    async (kind) => {
      const away = new AppError(kind, "the database took too long");
      const context = { ...withLocator(async () => {}), bmc: () => Promise.reject(away) };
      await expect(tidyUp(machineIn(phase, LIT), context)).rejects.toBe(away);
    },
  );
});
