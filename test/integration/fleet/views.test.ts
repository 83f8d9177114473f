import { expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const { db } = database;
  await db.execute("insert into fleet_sites (name, url, created_by) values ('lab', 'https://maas.example', 'kim')");
  await db.execute(
    `insert into fleet_nodes (id, site, profile, sku, hostname, ipmi_ip, mode, machine_id, request_id, fingerprint, created_by, state, facts)
     values ('fn-1', 'lab', 'h100', 'gpu8', 'gpu-1', '10.0.0.1', 'maas', 'm-1', 'a', '', 'kim', 'quarantined',
             '{"systemId":"abc123","quarantineReason":"released_in_maas"}'),
            ('fn-2', 'lab', 'h100', 'gpu8', 'gpu-2', '10.0.0.2', 'maas', 'm-2', 'b', '', 'kim', 'active',
             '{"systemId":"def456","quarantineReason":"of before"}')`,
  );
  await db.execute(`insert into fleet_site_watches (site, listed_at) values ('lab', '2026-01-02T03:04:05Z')`);
  await db.execute(
    `insert into fleet_observations (node_id, site, system_id, observed, verdict, since)
     values ('fn-1', 'lab', 'abc123', 'Ready', 'fine', '2026-01-01T00:00:00Z'), ('fn-2', 'lab', 'of-before', 'Broken', 'fine', now())`,
  );
  const run = (id: string, more: Readonly<Record<string, unknown>>) => {
    const row = {
      ...{ id, target_kind: "fleet_node", target_id: "fn-1", request_id: id, fingerprint: "", type: "", plan_id: "w" },
      ...{ plan: { workflow: "fleet_onboarding" }, params: {}, job_id: "run-1", initiator: "kim", facts: {} },
      ...more,
    };
    const names = Object.keys(row);
    return db.execute(
      `insert into runs (${names.join(", ")}) values (${names.map((_, at) => `$${at + 1}`).join(", ")})`,
      Object.values(row),
    );
  };
  await run("run-1", {
    state: "FAILED",
    next_run_id: "run-2",
    initiator: "ann",
    created_at: new Date("2026-01-01T10:00:00Z"),
  });
  const error = { code: "EXECUTION_FAILED", message: "no BOSS disk", retryable: false };
  await run("run-2", {
    ...{ state: "FAILED", attempt: 2, previous_run_id: "run-1", action: "retry" },
    facts: { error: { ...error, details: { step: "configure_storage", cause: "boss_disk_not_found" } } },
  });
  const steps = [
    { name: "disable_node", state: "SUCCEEDED" },
    { name: "drain_node", state: "RUNNING" },
    { name: "cleanup_storage", state: "WAITING" },
  ];
  await run("run-3", {
    ...{ state: "RUNNING", target_id: "fn-2", job_id: "run-3", plan: { workflow: "fleet_decommission" } },
    ...{ params: { mode: "soft_reset" }, facts: { steps } },
  });
  await run("run-4", {
    state: "RUNNING",
    target_kind: "machine",
    target_id: "m-9",
    machine_id: "m-9",
    job_id: "run-4",
    plan: {},
  });
});
afterAll(() => database.drop());

test("nodes has a row a node: its coarse state, and what MAAS shows of the machine that it is bound to", async () => {
  expect(await database.db.query("select * from nodes order by id")).toEqual([
    expect.objectContaining({
      ...{ id: "fn-1", hostname: "gpu-1", status: "quarantined", quarantine_reason: "released_in_maas" },
      ...{ maas_system_id: "abc123", maas_state: "Ready", maas_seen_at: new Date("2026-01-02T03:04:05Z") },
    }),
    expect.objectContaining({ id: "fn-2", status: "active", quarantine_reason: null, maas_state: null }),
  ]);
});

test("node_onboardings and node_decommissions have a row a job, as its latest attempt has it", async () => {
  expect(await database.db.query("select * from node_onboardings")).toEqual([
    {
      ...{ id: "run-1", node_id: "fn-1", status: "failed_manual_intervention", stage: "configure_storage", attempt: 2 },
      ...{ failure_class: "boss_disk_not_found", message: "no BOSS disk", run_id: "run-2", requested_by: "ann" },
      ...{ created_at: new Date("2026-01-01T10:00:00Z"), ended_at: expect.any(Date) },
    },
  ]);
  expect(await database.db.query("select * from node_decommissions")).toEqual([
    expect.objectContaining({
      ...{ id: "run-3", node_id: "fn-2", status: "running", stage: "drain_node", mode: "soft_reset" },
      ...{ failure_class: null, ended_at: null },
    }),
  ]);
});
