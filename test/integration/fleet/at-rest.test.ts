import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fleetNodeLifecycle } from "../../../src/lifecycles/fleet-node/lifecycle.ts";
import { JOB_STATES } from "../../../src/runs/model/run.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { faultsAtRest, mayGoTogether, PAIRS, tupleFault } from "../../support/fleet/at-rest.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

const STATES = Object.keys(fleetNodeLifecycle.states) as (keyof typeof fleetNodeLifecycle.states)[];

/** The two tables of the specification, typed in once more. */
test("the tables of states and jobs are those of the specification", () => {
  expect(PAIRS.fleet_onboarding.specified).toEqual({
    pending: ["enrolling"],
    running: ["enrolling"],
    failed_retryable: ["enrolling"],
    failed_manual_intervention: ["enrolling", "quarantined"],
    completed: ["active"],
    reconciled: ["active"],
  });
  expect(PAIRS.fleet_decommission.specified).toEqual({
    running: ["active", "offline", "quarantined", "draining", "retired", "removing"],
    failed_retryable: ["retired"],
    failed_manual_intervention: ["retired", "quarantined"],
    completed: ["deleted"],
  });
});

test("a removed node has no job but the one that removed it, and nothing is onboarded out of a removal", () => {
  const jobsOf = (workflow: keyof typeof PAIRS, node: (typeof STATES)[number]) =>
    JOB_STATES.filter((job) => mayGoTogether(workflow, job, node));
  expect(jobsOf("fleet_onboarding", "deleted")).toEqual([]);
  expect(jobsOf("fleet_decommission", "deleted")).toEqual(["completed", "reconciled"]);
  for (const node of ["draining", "retired", "removing"] as const) expect(jobsOf("fleet_onboarding", node)).toEqual([]);
  for (const node of ["bootstrap_issued", "enrolling"] as const) expect(jobsOf("fleet_decommission", node)).toEqual([]);
});

describe("one machine in all its vocabularies", () => {
  const machine = fc.constantFrom(
    "FACTORY_READY",
    "READY",
    "PROVISIONING",
    "IN_SERVICE",
    "MAINTENANCE",
    "RMA",
    "RETIRED",
  );
  const install = fc.constantFrom(
    null,
    "discovered",
    "pending",
    "installing",
    "installed",
    "active",
    "retired",
    "migrating",
  );
  const node = fc.record({
    state: fc.constantFrom(...STATES.filter((state) => state !== "deleted")),
    jobs: fc.array(fc.constantFrom("run-1", "run-2"), { maxLength: 2 }),
  });

  test("goes together with no live node in whatever states", () => {
    fc.assert(fc.property(machine, install, (m, i) => tupleFault({ machine: m, install: i, nodes: [] }) === undefined));
  });

  test("takes one live node with at most one job, on a machine that is not given away, beside no install at work", () => {
    fc.assert(
      fc.property(machine, install, fc.array(node, { minLength: 1, maxLength: 2 }), (m, i, nodes) => {
        const isGivenAway = ["IN_SERVICE", "RMA", "RETIRED"].includes(m);
        const isInstalled = i !== null && !["discovered", "retired"].includes(i);
        const isTooMuch = nodes.length > 1 || nodes.some(({ jobs }) => jobs.length > 1);
        const isTooEarly = m === "FACTORY_READY" && nodes[0]?.state === "active";
        const isFault = isGivenAway || isInstalled || isTooMuch || isTooEarly;
        expect(tupleFault({ machine: m, install: i, nodes }) !== undefined).toBe(isFault);
      }),
    );
  });
});

describe("the journal is replayed commit by commit", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
    const { db } = database;
    await db.execute("insert into fleet_sites (name, url, created_by) values ('lab', 'https://maas.example', 'kim')");
    await db.execute("insert into machines (id, provider, state) values ('m-1', 'maas', 'READY')");
    for (const [id, state] of [
      ["fn-1", "deleted"],
      ["fn-2", "active"],
    ])
      await db.execute(
        `insert into fleet_nodes (id, site, profile, sku, hostname, mode, machine_id, request_id, fingerprint, created_by, state)
         values ($1, 'lab', 'h100', 'gpu8', 'gpu-1', 'maas', 'm-1', $1, '', 'kim', $2)`,
        [id, state],
      );
    await db.execute(
      `insert into runs (id, target_kind, target_id, request_id, fingerprint, type, plan_id, plan, job_id, initiator, state)
       values ('run-1', 'fleet_node', 'fn-1', 'r', '', '', 'w', '{"workflow":"fleet_onboarding"}', 'run-1', 'kim', 'SUCCEEDED')`,
    );
  });
  afterAll(() => database.drop());

  /** Each list is one commit. */
  async function faultsOf(...commits: readonly (readonly [kind: string, id: string, state: string])[][]) {
    await database.db.execute("delete from journal");
    for (const rows of commits)
      await database.db.transaction(async (tx) => {
        for (const [kind, id, state] of rows)
          await tx.execute(
            `insert into journal (epoch, kind, id, version, type, to_state, actor) values (1, $1, $2, 1, 'transition', $3, 'kim')`,
            [kind, id, state],
          );
      });
    return faultsAtRest(database.db);
  }
  const READY = ["machine", "m-1", "READY"] as const;

  test("and what goes together is no fault, also where a commit passes through more", async () => {
    expect(
      await faultsOf(
        [READY],
        [
          ["fleet_node", "fn-1", "enrolling"],
          ["run", "run-1", "PENDING"],
        ],
        [
          ["run", "run-1", "SUCCEEDED"],
          ["fleet_node", "fn-1", "active"],
        ],
        [["fleet_node", "fn-1", "deleted"]],
        [["fleet_node", "fn-2", "enrolling"]],
      ),
    ).toEqual([]);
  });

  test("a job that ends with its node elsewhere is told", async () => {
    const faults = await faultsOf([READY], [["fleet_node", "fn-1", "enrolling"]], [["run", "run-1", "SUCCEEDED"]]);
    expect(faults).toEqual(["node fn-1: fleet_onboarding ended completed with the node enrolling"]);
  });

  test("and so are two live nodes of a machine, a machine that is given away, and an install at work", async () => {
    expect(await faultsOf([READY], [["fleet_node", "fn-1", "active"]], [["fleet_node", "fn-2", "enrolling"]])).toEqual([
      "machine m-1: 2 live nodes",
    ]);
    expect(await faultsOf([READY], [["fleet_node", "fn-2", "active"]], [["machine", "m-1", "RETIRED"]])).toEqual([
      "machine m-1: the node is active on a machine that is RETIRED",
    ]);
    expect(await faultsOf([READY], [["fleet_node", "fn-2", "active"]], [["install", "m-1", "pending"]])).toEqual([
      "machine m-1: the node is active beside an install that is pending",
    ]);
  });
});
