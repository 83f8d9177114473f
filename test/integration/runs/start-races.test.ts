// @module-tag race
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { StepSchema } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { ClusterService, ImageService } from "../../../contract/millwright/v1/cluster_pb.js";
import type { Capability } from "../../../src/capabilities/provider.ts";
import { createCluster } from "../../../src/services/catalog/clusters.ts";
import { createImage } from "../../../src/services/catalog/images.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunSurface, startRunSurface, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type Parts, refusal } from "../api/forge-under-test.ts";

/** What somebody else does in the middle of a StartRun. */
let surface: RunSurface;
beforeAll(async () => {
  const all: ReadonlySet<Capability> = new Set(["reset", "system", "exec", "cluster", "imaging"]);
  surface = await startRunSurface({ capabilitiesOf: () => all });
});
afterAll(() => surface.close());

const createPlan = (planId: string) =>
  surface.plans.createPlan({ plan: { planId, steps: [{ name: "boot", kind: { case: "reboot", value: {} } }] } });

/** How many statements wait for a lock of one of these kinds. */
async function waiting(kinds: readonly string[]): Promise<number> {
  const [row] = await surface.db.query<{ count: number }>(
    `select count(*)::int as count from pg_locks l join pg_stat_activity a using (pid)
      where not l.granted and a.datname = current_database() and l.locktype = any($1)`,
    [kinds],
  );
  return row?.count ?? 0;
}

test("a plan that a run is being started with is not deleted from under it", async () => {
  await createPlan("plan-wanted");
  const machineId = await surface.addMachine("m-deleting");
  let deleting: Promise<unknown> = Promise.resolve();
  let starting: Promise<unknown> = Promise.resolve();
  await surface.db.transaction(async (tx) => {
    await tx.execute("lock table runs in share mode"); // StartRun reads all that it wants, and stops where it writes the run
    starting = surface.runs.startRun({ requestId: "r", machineId, planId: "plan-wanted" });
    await eventually(async () => (await waiting(["relation"])) === 1, { what: "StartRun is about to write the run" });
    let isOver = false;
    deleting = refusal(surface.plans.deletePlan({ planId: "plan-wanted" })).finally(() => (isOver = true));
    deleting.catch(() => undefined);
    await eventually(async () => isOver || (await waiting(["transactionid", "tuple"])) > 0, {
      what: "DeletePlan is over, or waits for StartRun",
    });
  });
  await expect(starting).resolves.toMatchObject({ planId: "plan-wanted" });
  await expect(deleting).resolves.toMatchObject({ code: Code.FailedPrecondition });
  await expect(surface.plans.deletePlan({ planId: "plan-wanted" })).rejects.toThrow(/refers to plan plan-wanted/);
});

test("a plan that is being deleted starts no run", async () => {
  await createPlan("plan-leaving");
  const machineId = await surface.addMachine("m-starting");
  let starting: Promise<unknown> = Promise.resolve();
  await surface.db.transaction(async (tx) => {
    await tx.execute("delete from plans where plan_id = 'plan-leaving'");
    starting = refusal(surface.runs.startRun({ requestId: "r", machineId, planId: "plan-leaving" }));
    await eventually(async () => (await waiting(["transactionid", "tuple"])) > 0, { what: "StartRun waits" });
  });
  await expect(starting).resolves.toMatchObject({ code: Code.NotFound, field: "plan_id" });
  expect((await surface.runs.listRuns({ filter: `machine_id=${machineId}` })).runs).toEqual([]);
});

test("of many who start and delete at once, none leaves a run without its plan", async () => {
  const rounds = Array.from({ length: 30 }, (_, index) => index);
  await Promise.all(
    rounds.map(async (round) => {
      const planId = `plan-race-${round}`;
      const machineId = await surface.addMachine(`m-race-${round}`);
      await createPlan(planId);
      await Promise.allSettled([
        surface.runs.startRun({ requestId: "r", machineId, planId }),
        surface.plans.deletePlan({ planId }),
      ]);
    }),
  );
  const stray = await surface.db.query(
    "select id from runs where plan_id like 'plan-race-%' and plan_id not in (select plan_id from plans)",
  );
  expect(stray).toEqual([]);
});

interface Catalog {
  readonly create: (name: string) => Promise<unknown>;
  readonly remove: (name: string) => Promise<unknown>;
  /** As it is done once all is checked. */
  readonly removeNow: string;
  readonly step: (name: string) => NonNullable<Parts<typeof StepSchema>["kind"]>;
}

const CATALOGS: readonly (readonly [kind: string, Catalog])[] = [
  [
    "cluster",
    {
      create: (name) =>
        createCluster(surface.deps, tester, { name, apiUrl: "https://k8s.example", kubeconfig: "apiVersion: v1" }),
      remove: (name) => surface.client(ClusterService).deleteCluster({ name }),
      removeNow: "delete from clusters where name = $1",
      step: (clusterRef) => ({ case: "verify", value: { clusterRef } }),
    },
  ],
  [
    "image",
    {
      create: (name) =>
        createImage(surface.deps, tester, {
          name,
          kind: "iso",
          location: "https://images.example/one.iso",
          digest: `sha256:${"0".repeat(64)}`,
          successProof: "",
        }),
      remove: (name) => surface.client(ImageService).deleteImage({ name }),
      removeNow: "delete from images where name = $1",
      step: (imageRef) => ({ case: "repave", value: { imageRef } }),
    },
  ],
];

describe.each(CATALOGS)("the %s that a run needs", (kind, { create, remove, removeNow, step }) => {
  const planned = async (name: string) => {
    await create(name);
    const planId = `plan-with-${name}`;
    await surface.plans.createPlan({ plan: { planId, steps: [{ name: "only", kind: step(name) }] } });
    return { planId, machineId: await surface.addMachine(`m-with-${name}`) };
  };

  test("is not deleted from under it while it is being started", async () => {
    const name = `${kind}-wanted`;
    const asked = await planned(name);
    let deleting: Promise<unknown> = Promise.resolve();
    let starting: Promise<unknown> = Promise.resolve();
    await surface.db.transaction(async (tx) => {
      await tx.execute("lock table runs in share mode"); // StartRun reads all that it wants, and stops where it writes the run
      starting = surface.runs.startRun({ requestId: "r", ...asked });
      await eventually(async () => (await waiting(["relation"])) === 1, { what: "StartRun is about to write the run" });
      let isOver = false;
      deleting = refusal(remove(name)).finally(() => (isOver = true));
      deleting.catch(() => undefined);
      await eventually(async () => isOver || (await waiting(["transactionid", "tuple"])) > 0, {
        what: "it is deleted, or that waits for StartRun",
      });
    });
    await expect(starting).resolves.toMatchObject({ planId: asked.planId });
    await expect(deleting).resolves.toMatchObject({ code: Code.FailedPrecondition });
    await expect(remove(name)).rejects.toThrow(new RegExp(`${kind} ${name} cannot be deleted: run `));
  });

  test("starts none while it is being deleted", async () => {
    const name = `${kind}-leaving`;
    const asked = await planned(name);
    let starting: Promise<unknown> = Promise.resolve();
    await surface.db.transaction(async (tx) => {
      await tx.execute(removeNow, [name]);
      starting = refusal(surface.runs.startRun({ requestId: "r", ...asked }));
      await eventually(async () => (await waiting(["transactionid", "tuple"])) > 0, { what: "StartRun waits" });
    });
    await expect(starting).resolves.toMatchObject({ code: Code.InvalidArgument, field: "plan_id" });
    expect((await surface.runs.listRuns({ filter: `machine_id=${asked.machineId}` })).runs).toEqual([]);
  });

  test("is there for each of many that are started while it is deleted", async () => {
    const rounds = Array.from({ length: 30 }, (_, round) => `${kind}-race-${round}`);
    await Promise.all(
      rounds.map(async (name) => {
        const asked = await planned(name);
        await Promise.allSettled([surface.runs.startRun({ requestId: "r", ...asked }), remove(name)]);
      }),
    );
    const stray = await surface.db.query(
      `select id from runs where plan_id like 'plan-with-${kind}-race-%'
         and substr(plan_id, length('plan-with-') + 1) not in (select name from ${kind}s)`,
    );
    expect(stray).toEqual([]);
  });
});

test("runs that were created within one millisecond are all on some page, once", async () => {
  const machineId = await surface.addMachine("m-paged");
  const ids: string[] = [];
  for (const micros of [900, 600, 300, 100]) {
    const { runId } = await surface.runs.startRun({ requestId: `r-${micros}`, machineId, type: "REBOOT" });
    await surface.db.execute(
      "update runs set state = 'SUCCEEDED', created_at = '2026-01-01T00:00:00.005Z'::timestamptz + $2 * interval '1 us' where id = $1",
      [runId, micros],
    );
    ids.push(runId);
  }
  const paged: string[] = [];
  let pageToken = "";
  do {
    const page = await surface.runs.listRuns({ filter: `machine_id=${machineId}`, pageSize: 1, pageToken });
    paged.push(...page.runs.map(({ runId }) => runId));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  expect(paged).toEqual(ids);
});
