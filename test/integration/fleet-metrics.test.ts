import { expect, test } from "vitest";
import { createFleetCollector } from "../../src/engine/fleet-metrics.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

test("/metrics shows states, lateness, failures, conditions, waits for claims, work depth and the journal's horizon as the database has them", async () => {
  const { db } = database;
  const shelf = (id: string, state: string, since: string) =>
    db.execute(
      `insert into power_shelves (id, name, bmc_mac, bmc_address, bmc_port, state, state_since)
       values ($1, $1, $1, '127.0.0.1', 443, $2, now() - $3::interval)`,
      [id, state, since],
    );
  await shelf("a", "ready", "10 days");
  await shelf("b", "ready", "1 second");
  await shelf("c", "maintenance", "1 second");
  await shelf("d", "maintenance", "1 day");
  await db.execute(
    `update power_shelves set outcome = '{"type":"failing","reason":"no answer"}' where id in ('b', 'd')`,
  );
  await db.execute(`update power_shelves set outcome = '{"type":"waiting","reason":"still on"}' where id = 'c'`);
  await db.execute(
    `insert into work (kind, id, wake_at, lease_until, lease_owner) values
       ('power_shelf', 'a', now() - interval '90 seconds', null, null),
       ('power_shelf', 'b', now() + interval '1 hour', null, null),
       ('power_shelf', 'c', now() + interval '1 minute', now() + interval '1 minute', 'r1'),
       ('power_shelf', 'd', now() - interval '5 seconds', now() - interval '5 seconds', 'dead')`,
  );
  const holds = (type: string, status = true) => ({
    type,
    status,
    reason: "R",
    message: "",
    last_transition: new Date(),
  });
  const machine = (id: string, state: string, conditions: object[]) =>
    db.execute("insert into machines (id, provider, state, conditions) values ($1, 'datacenter', $2, $3)", [
      id,
      state,
      JSON.stringify(conditions),
    ]);
  await machine("m-1", "READY", [holds("Degraded"), holds("NeedsIntervention")]);
  await machine("m-2", "READY", [holds("Degraded"), holds("Reachable")]);
  await machine("m-3", "READY", [holds("Degraded", false), holds("Reachable", false)]);
  await machine("m-4", "RETIRED", [holds("Degraded")]);
  await machine("m-5", "READY", [
    holds("Reachable", false),
    { ...holds("BMCReachable", false), cause: { code: "no_answer" } },
  ]);
  await machine("m-6", "READY", [{ ...holds("Reachable", false), reason: "OffOnPurpose" }, holds("Degraded", false)]);
  await machine("m-7", "RMA", [holds("Reachable", false)]);
  await db.execute("update machines set rack = 'r1' where id in ('m-3', 'm-5')");
  await db.execute("update power_shelves set rack_id = 'r1' where id = 'd'");
  await shelf("e", "error", "1 day");
  await db.execute(
    `update power_shelves set state_data = '{"failure": {"code": "power_mismatch"}}',
            outcome = '{"type": "needs_intervention", "reason": "x"}' where id = 'e'`,
  );
  await db.execute(
    `insert into claims (thing_kind, thing_id, holder_kind, holder_id, reason, requested_at, granted_at, joined_at) values
       ('machine', 'm-1', 'run', 'r-1', 'x', now() - interval '2 hours', now(), null),
       ('machine', 'm-1', 'run', 'r-2', 'x', now() - interval '90 seconds', null, null),
       ('machine', 'm-2', 'run', 'r-2', 'x', now() - interval '90 seconds', null, null),
       ('machine', 'm-1', 'run', 'r-3', 'x', now() - interval '3 hours', null, now()),
       ('machine', 'm-1', 'run', 'r-4', 'x', now() - interval '5 seconds', null, null)`,
  );
  await db.execute(
    `insert into racks (id, name, state, rack_profile_id, state_since, maintenance_requested, reprovision_requested) values
       ('r1', 'r1', 'ready', 'p', now(), jsonb_build_object('requested_at', now() - interval '2 hours'), null),
       ('r2', 'r2', 'error', 'p', now(), '{"requested_at": "no time"}', jsonb_build_object('requested_at', now() - interval '90 seconds')),
       ('r3', 'r3', 'discovering', 'p', now() - interval '1 day', null, null)`,
  );
  const metrics = createMetrics({ processMetrics: false });
  metrics.collectWith(createFleetCollector({ db, stores: allStores }));
  const { body } = await metrics.render();
  const value = (series: string) =>
    Number(
      body
        .split("\n")
        .find((line) => line.startsWith(`${series} `))
        ?.split(" ")[1] ?? Number.NaN,
    );

  expect(value('millwright_things{kind="rack",state="error"}')).toBe(1);
  expect(value('millwright_things_above_sla{kind="rack",state="discovering"}')).toBe(1);
  expect(value('millwright_requests_pending{kind="rack",request="maintenance"}')).toBe(2);
  expect(value('millwright_requests_pending{kind="rack",request="reprovision"}')).toBe(1);
  expect(value('millwright_requests_pending{kind="power_shelf",request="maintenance"}')).toBe(0);
  const oldest = value('millwright_requests_oldest_pending_seconds{kind="rack",request="maintenance"}');
  expect(oldest).toBeGreaterThanOrEqual(7_200);
  expect(value('millwright_requests_oldest_pending_seconds{kind="power_shelf",request="maintenance"}')).toBe(0);
  expect(value('millwright_things{kind="power_shelf",state="ready"}')).toBe(2);
  expect(value('millwright_things{kind="power_shelf",state="maintenance"}')).toBe(2);
  expect(value('millwright_things{kind="power_shelf",state="error"}')).toBe(1);
  expect(value('millwright_things_above_sla{kind="power_shelf",state="maintenance"}')).toBe(1);
  expect(value('millwright_things_above_sla{kind="power_shelf",state="ready"}')).toBe(0);
  expect(value('millwright_things_failing{kind="power_shelf",state="ready"}')).toBe(1);
  expect(value('millwright_things_failing{kind="power_shelf",state="maintenance"}')).toBe(1);
  expect(value('millwright_things_failing{kind="power_shelf",state="error"}')).toBe(1);
  const troubles = body.split("\n").filter((line) => line.startsWith("millwright_things_in_trouble{"));
  const trouble = (kind: string, word: string, rack: string, cause: string, things: number) =>
    `millwright_things_in_trouble{kind="${kind}",trouble="${word}",rack="${rack}",cause="${cause}"} ${things}`;
  expect(troubles.toSorted()).toEqual(
    [
      trouble("machine", "degraded", "", "R", 2),
      trouble("machine", "needs_person", "", "R", 1),
      trouble("machine", "unreachable", "r1", "R", 2),
      trouble("machine", "bmc_unreachable", "r1", "no_answer", 1),
      trouble("power_shelf", "failing", "", "", 1),
      trouble("power_shelf", "failing", "r1", "", 1),
      trouble("power_shelf", "failed", "", "power_mismatch", 1),
      trouble("power_shelf", "needs_person", "", "power_mismatch", 1),
      trouble("rack", "failed", "r2", "", 1),
    ].toSorted(),
  );
  expect(value('millwright_machine_conditions{condition="Degraded"}')).toBe(2);
  expect(value('millwright_machine_conditions{condition="NeedsIntervention"}')).toBe(1);
  expect(value('millwright_things_waiting_for_claims{kind="run"}')).toBe(2);
  expect(value('millwright_claims_oldest_wait_seconds{kind="run"}')).toBeGreaterThanOrEqual(90);
  expect(value('millwright_claims_oldest_wait_seconds{kind="run"}')).toBeLessThan(3_600);
  expect(value('millwright_things_waiting_for_claims{kind="power_shelf"}')).toBe(0);
  expect(value('millwright_claims_oldest_wait_seconds{kind="power_shelf"}')).toBe(0);
  expect(value('millwright_work_due{kind="power_shelf"}')).toBe(2);
  expect(value('millwright_work_leased{kind="power_shelf"}')).toBe(1);
  expect(value('millwright_work_oldest_due_seconds{kind="power_shelf"}')).toBeGreaterThanOrEqual(90);
  expect(value("millwright_journal_horizon_age_seconds")).toBeGreaterThanOrEqual(0);
  expect(value("millwright_collect_failures_total")).toBe(0);
  for (const kind of allStores.keys()) expect(value(`millwright_work_due{kind="${kind}"}`)).toBeGreaterThanOrEqual(0);
});
