import { expect, test } from "vitest";
import { minutes } from "../../../src/kernel/time/duration.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { collectFleet } from "../../../src/wiring/fleet/fleet-loops.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await database.db.execute(
    "insert into fleet_sites (name, url, created_by) values ('lab', 'https://maas.example', 'kim')",
  );
});
afterAll(() => database.drop());

/** Its agent enrolled an hour ago, and was heard so many seconds ago. */
async function aNode(id: string, state: string, heard?: readonly [seconds: number, health: string | null]) {
  const { db } = database;
  await db.execute(
    `insert into fleet_nodes (id, site, profile, sku, hostname, mode, machine_id, request_id, fingerprint, created_by, state)
     values ($1, 'lab', 'h100', 'gpu8', $1, 'maas', 'm-' || $1, $1, '', 'kim', $2)`,
    [id, state],
  );
  await db.execute(
    `insert into fleet_agents (node_id, token_id, issue, request_sha, enrolled_at) values ($1, $1, 1, '', now() - interval '1 h')`,
    [id],
  );
  if (heard)
    await db.execute(
      `insert into fleet_heartbeats (node_id, seen_at, health) values ($1, now() - $2 * interval '1 s', $3)`,
      [id, ...heard],
    );
}

test("/metrics counts agents by what was heard of them, and says for how long nothing was", async () => {
  await aNode("fn-well", "active", [10, "healthy"]);
  await aNode("fn-well-too", "active", [40, "healthy"]);
  await aNode("fn-ill", "active", [1, "unhealthy"]);
  await aNode("fn-quiet", "offline", [400, "healthy"]);
  await aNode("fn-never", "offline");
  await aNode("fn-new", "enrolling", [0, null]);
  await aNode("fn-gone", "deleted", [9_999, "healthy"]);
  const metrics = createMetrics({ processMetrics: false });
  metrics.collectWith(collectFleet(database.db, { offlineAfter: minutes(3) }));
  const { body } = await metrics.render();
  const counted = body.split("\n").filter((line) => line.startsWith("millwright_fleet_agents{"));
  expect(counted.toSorted()).toEqual([
    'millwright_fleet_agents{state="active",heard="healthy"} 2',
    'millwright_fleet_agents{state="active",heard="unhealthy"} 1',
    'millwright_fleet_agents{state="enrolling",heard="unknown"} 1',
    'millwright_fleet_agents{state="offline",heard="silent"} 2',
  ]);
  const age = (state: string) =>
    Number(body.match(new RegExp(`^millwright_fleet_heartbeat_age_seconds\\{state="${state}"\\} (.+)$`, "m"))?.[1]);
  expect(age("active")).toBeGreaterThanOrEqual(40);
  expect(age("active")).toBeLessThan(400);
  expect(age("offline")).toBeGreaterThanOrEqual(3_600);
  expect(body).not.toContain('state="deleted"');
});
