// @module-tag race
import { afterAll, beforeAll, expect, test } from "vitest";
import { onboardNodes } from "../../../src/services/fleet/onboard-many.ts";
import { setProfile } from "../../../src/services/fleet/profiles.ts";
import { announceNow } from "../../../src/store/lifecycle/journal.ts";
import { eventually } from "../../support/eventually.ts";
import { openOnboardingBench, SITE } from "../../support/fleet/onboarding-bench.ts";
import type { Death } from "../../support/processes/batch-victim.ts";
import type { NodeBatchVictimOrder } from "../../support/processes/node-batch-victim.ts";
import { openProcessBench, type ProcessBench } from "../../support/processes/process-bench.ts";
import { startProgram } from "../../support/processes/programs.ts";
import { openRunReplica } from "../../support/processes/run-replica.ts";
import { tester } from "../../support/run-bench.ts";

let processes: ProcessBench;
beforeAll(() => {
  processes = openProcessBench();
});
afterAll(() => processes.close());

/** One after the other, in the course of one batch: each replica dies in a pass of the batch itself. */
const DEATHS: readonly Death[] = [
  { failPoint: "create:inserted", nth: 2 }, // in the middle of a node: machine, node and job are there or nothing is
  { failPoint: "create:inserted", nth: 7 }, // some of the nodes of a pass are there, and the pass is not
  { failPoint: "controller:handled", nth: 1 }, // all of them are, and what was made is on no record of the batch
  { failPoint: "committer:inside", nth: 2 },
  { failPoint: "committer:after", nth: 2 },
];
const NODES = 12;

/**
 * A batch asks for each node under a key that follows from its run and the node's place: asked again after whatever death it is the same node. The
 * jobs of the nodes end by themselves here, for want of an account: what they do is no part of the batch.
 */
test("a batch of nodes can die again and again: each node is onboarded once, with one machine and one job", async ({
  onTestFinished,
}) => {
  const bench = await openOnboardingBench({ hosts: 1, isIdle: true });
  onTestFinished(() => bench.close());
  const { deps } = bench;
  const { db } = deps;
  await setProfile(deps, tester, { site: SITE, name: "few", policy: { batch_max_parallel: 3 } });
  const names = Array.from({ length: NODES }, (_, at) => `gpu-batch-${at + 1}`);
  const nodes = names.map((hostname, at) => ({
    ...{ site: SITE, profile: "few", sku: "gpu8", hostname, ipmiIp: `10.9.7.${at + 1}`, mode: "" },
  }));
  const { id } = await onboardNodes(deps, tester, { requestId: "batch-of-nodes", nodes });
  const letLeasesEnd = async () => {
    await db.execute(
      "update work set lease_until = now() - interval '1 s', wake_at = least(wake_at, now()) where lease_owner is not null",
    );
    await announceNow(db);
  };
  const instanceOf = ({ failPoint, nth }: Death) => `dies at ${failPoint} ${nth}`;
  for (const death of DEATHS) {
    const order: NodeBatchVictimOrder = {
      ...{ url: bench.databaseUrl, keyFile: bench.keyFile, instance: instanceOf(death), death },
    };
    const victim = await startProgram(processes, { program: "node-batch-victim.ts", args: [JSON.stringify(order)] });
    expect(await victim.exited, victim.transcript()).toEqual({ code: null, signal: "SIGKILL" });
    await letLeasesEnd();
  }
  const successor = openRunReplica({
    ...{ url: bench.databaseUrl, keyFile: bench.keyFile, instance: "successor", handlesAll: true },
  });
  onTestFinished(() => successor.stop());
  await successor.work();
  const batch = async () =>
    (
      await db.query<{ state: string; receipt: { nodes: Record<string, string>; refused: object }; why: string }>(
        "select state, facts #> '{steps,0,receipt}' as receipt, facts #>> '{error,message}' as why from runs where id = $1",
        [id],
      )
    )[0];
  await eventually(
    async () => {
      await bench.hurry();
      return (await batch())?.state === "FAILED";
    },
    { what: "the batch has ended", within: 60_000, seen: async () => JSON.stringify(await batch()) },
  );
  const ended = await batch();
  expect(ended?.why).toContain(`0 of ${NODES} onboarded; failed: `);
  expect(ended?.receipt.refused).toEqual({});

  const made = await db.query<{ id: string; hostname: string; machine_id: string }>(
    "select id, hostname, machine_id from fleet_nodes order by hostname",
  );
  expect(made.map(({ hostname }) => hostname)).toEqual(names.toSorted());
  expect(new Set(Object.values(ended?.receipt.nodes ?? {}))).toEqual(new Set(made.map((node) => node.id)));
  const machines = await db.query<{ id: string }>("select id from machines");
  expect(machines.map((machine) => machine.id).toSorted()).toEqual(made.map(({ machine_id }) => machine_id).toSorted());
  const jobs = await db.query<{ target_id: string; cause: string }>(
    "select target_id, facts #>> '{error,details,cause}' as cause from runs where type = 'ONBOARD'",
  );
  expect(jobs.map(({ target_id }) => target_id).toSorted()).toEqual(made.map((node) => node.id).toSorted());
  expect(new Set(jobs.map(({ cause }) => cause))).toEqual(new Set(["credentials_missing"]));
  expect(await db.query("select * from claims")).toEqual([]);
}, 240_000);
