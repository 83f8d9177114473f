import { beforeEach, describe, expect, test } from "vitest";
import type { ClusterTarget } from "../cluster-target.ts";
import type { NodeList } from "../node-list.ts";
import { need } from "../provider.ts";
import { aCall, type DeviceTrouble, type FaultyBench, type SetUpBench } from "./device-bench.ts";
import { describeTroubles } from "./failures.ts";
import { eventually } from "./machine-bench.ts";

/** A cluster, and a machine that has not joined it. */
export interface NodeListBench extends FaultyBench<ClusterTarget> {
  /** What the cluster learns of the machine when it joins. */
  readonly machine: {
    readonly nodeName: string;
    readonly systemUuid: string;
    readonly addresses: readonly string[];
  };
  /** The machine joins, and has work of others on it from then on; resolves once the cluster was told. */
  join(): Promise<void>;
  /** The machine goes down. */
  goDown(): Promise<void>;
  /** Somebody keeps new work away from its node, or lets it come again. */
  cordon(isCordoned: boolean): Promise<void>;
  hasCordon(): Promise<boolean>;
}

/** What every way to list the nodes of clusters must do. */
export function describeNodeList(
  name: string,
  setUp: SetUpBench<NodeListBench>,
  troubles: readonly DeviceTrouble[],
): void {
  describe(`node list of ${name}`, () => {
    let bench: NodeListBench;
    let nodes: NodeList;
    beforeEach(async () => {
      bench = await setUp();
      nodes = need(bench.provider, ["nodes"]).nodes;
    });
    const find = async () =>
      (await nodes.listNodes(bench.target, aCall())).filter(({ name }) => name === bench.machine.nodeName);
    const listWorkloads = (nodeName = bench.machine.nodeName) => nodes.listWorkloads(bench.target, nodeName, aCall());
    const joined = async () => {
      await bench.join();
      return eventually(async () => {
        const found = await find();
        expect(found).toMatchObject([{ ready: true }]);
        return found[0];
      });
    };

    test("has no node for a machine that has not joined, and nothing runs there", async () => {
      expect(await find()).toEqual([]);
      expect(await listWorkloads()).toEqual([]);
    });

    test("has one for a machine that has, with everything by which it can be told", async () => {
      const { nodeName, systemUuid, addresses } = bench.machine;
      expect(await joined()).toMatchObject({
        name: nodeName,
        ready: true,
        reason: "",
        unschedulable: false,
        systemUuid,
        addresses,
        bootId: expect.stringMatching(/./),
      });
    });

    test("says that a node is not ready once its machine is down, and why", async () => {
      await joined();
      await bench.goDown();
      await eventually(async () =>
        expect(await find()).toMatchObject([{ ready: false, reason: expect.stringMatching(/./) }]),
      );
    });

    test("says whether new work is kept away from a node", async () => {
      await joined();
      for (const isCordoned of [true, false]) {
        await bench.cordon(isCordoned);
        expect(await find()).toMatchObject([{ unschedulable: isCordoned }]);
      }
    });

    test("names what a drain would move away, and moves nothing", async () => {
      await joined();
      const workloads = await listWorkloads();
      expect(workloads.length).toBeGreaterThan(0);
      for (const workload of workloads) expect(workload).toMatch(/^[^/]+\/[^/]+$/);
      expect(new Set(workloads).size).toBe(workloads.length);
      await find();
      expect(await listWorkloads()).toEqual(workloads);
      expect(await bench.hasCordon()).toBe(false);
    });

    test("takes the name of a node for a name, whatever is in it", async () => {
      for (const odd of ["no-such-node", "a,spec.nodeName=b", "a=b", "../nodes", "ü?&#%2f"])
        expect(await listWorkloads(odd)).toEqual([]);
    });

    describeTroubles(
      () => bench,
      troubles,
      {
        listNodes: ({ provider, target }, call) => need(provider, ["nodes"]).nodes.listNodes(target, call),
        listWorkloads: ({ provider, target, machine }, call) =>
          need(provider, ["nodes"]).nodes.listWorkloads(target, machine.nodeName, call),
      },
      {
        withSecret: (one, token) => ({ ...one, target: { ...one.target, credentials: { token } } }),
        isTold: "Check the cluster's kubeconfig",
      },
    );
  });
}
