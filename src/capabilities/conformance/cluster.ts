import { beforeEach, describe, expect, test } from "vitest";
import { StepFailure } from "../../kernel/errors.ts";
import { minutes } from "../../kernel/time/duration.ts";
import type { Cluster, NodeIdentity } from "../cluster.ts";
import type { ClusterTarget } from "../cluster-target.ts";
import { need, type Provider } from "../provider.ts";
import { aCall, aFencedCall } from "./device-bench.ts";
import { eventually } from "./machine-bench.ts";

/** A cluster, and a machine that has not joined it. */
export interface ClusterBench {
  readonly provider: Provider;
  readonly target: ClusterTarget;
  readonly identity: NodeIdentity & { readonly systemUuid: string };
  /** The machine joins; resolves once the cluster was told. */
  join(): Promise<void>;
  /** The machine goes down. */
  goDown(): Promise<void>;
  /** Where no API listens. */
  readonly nowhere: Pick<ClusterTarget, "apiUrl">;
}

/** What every way to work with clusters must do. */
export function describeCluster(name: string, setUp: () => Promise<ClusterBench>): void {
  describe(`cluster of ${name}`, () => {
    let bench: ClusterBench;
    let cluster: Cluster;
    beforeEach(async () => {
      bench = await setUp();
      cluster = need(bench.provider, ["cluster"]).cluster;
    });
    const find = (identity: NodeIdentity = bench.identity) => cluster.findNode(bench.target, identity, aCall());
    const joined = async () => {
      await bench.join();
      return eventually(async () => {
        const node = await find();
        expect(node).toMatchObject({ ready: true });
        return node?.name ?? "";
      });
    };

    test("has no node for a machine that has not joined", async () => {
      expect(await find()).toBeUndefined();
    });

    test("finds the machine by its UUID, and says what it is", async () => {
      const name = await joined();
      expect(await find()).toMatchObject({
        name,
        uid: expect.stringMatching(/./),
        reason: "",
        unschedulable: false,
        systemUuid: bench.identity.systemUuid,
        bootId: expect.stringMatching(/./),
        matchedBy: "system_uuid",
      });
      const stranger = { systemUuid: "00000000-0000-4000-8000-000000000000", serial: null, addresses: [] };
      expect(await find(stranger)).toBeUndefined();
    });

    test("keeps new work away from a node and lets it come again, however often it is asked", async () => {
      const name = await joined();
      for (const schedulable of [false, false, true, true]) {
        await cluster.setSchedulable(bench.target, name, schedulable, aCall());
        expect(await find()).toMatchObject({ unschedulable: !schedulable });
      }
    });

    test("empties a node, and says what is left until nothing is", async () => {
      const name = await joined();
      await cluster.setSchedulable(bench.target, name, false, aCall());
      await eventually(async () => {
        const { remaining } = await cluster.drain(bench.target, name, aCall(), { barePods: false, localData: false });
        expect(remaining).toEqual([]);
      });
    });

    test("sees that a node is not ready once its machine is down, and why", async () => {
      await joined();
      await bench.goDown();
      await eventually(async () =>
        expect(await find()).toMatchObject({ ready: false, reason: expect.stringMatching(/./) }),
      );
    });

    test("mints material to join with that is secret, new each time and soon over", async () => {
      const mint = (id: string) => cluster.mintJoin(bench.target, { id, lifetime: minutes(10) }, aCall());
      const first = await mint("abc123");
      expect(first).toMatchObject({
        endpoint: expect.stringMatching(/^.+:\d+$/),
        token: expect.stringMatching(/^abc123\.[a-z0-9]{16}$/),
        caCertHash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      });
      expect(first.expiresAt.getTime()).toBeGreaterThan(Date.now());
      expect(first.expiresAt.getTime()).toBeLessThanOrEqual(Date.now() + minutes(10) + 1_000);
      expect((await mint("abc124")).token).not.toBe(first.token);
      // Whoever lost the answer asks again with the id on record.
      const again = await mint("abc123");
      expect(again.token).not.toBe(first.token);
      for (let times = 0; times < 2; times += 1) await cluster.revokeJoin(bench.target, "abc123", aCall());
    });

    test("fails for good where it is not let in, and does not say the token", async () => {
      const stranger = { ...bench.target, credentials: { token: "not-the-token" } };
      const failure: unknown = await cluster.findNode(stranger, bench.identity, aCall()).catch((error) => error);
      expect(failure).toMatchObject({ disposition: "fail", family: "keeps_out" });
      expect((failure as Error).message).not.toContain("not-the-token");
    });

    test("can be tried again where nobody answers", async () => {
      const gone = { ...bench.target, ...bench.nowhere };
      await expect(cluster.findNode(gone, bench.identity, aCall())).rejects.toMatchObject({
        disposition: "retry",
        family: "silent",
      });
    });

    test("sends nothing once the lease is gone, and ends when it is told to stop", async () => {
      await expect(cluster.findNode(bench.target, bench.identity, aFencedCall())).rejects.toThrow("the lease is gone");
      const stop = new AbortController();
      const asked = cluster.findNode(bench.target, bench.identity, aCall({ signal: stop.signal }));
      stop.abort();
      await expect(asked).rejects.toBeInstanceOf(StepFailure);
    });
  });
}
