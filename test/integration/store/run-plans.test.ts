// @module-tag race
import { expect, test } from "vitest";
import { parseRunFilter, runCondition } from "../../../src/services/run/filter.ts";
import type { Queryable } from "../../../src/store/postgres/database.ts";
import { findByRequests, listRunsWithKeys } from "../../../src/store/run/runs.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { plansOf } from "../../support/query-plans.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** A fleet's history: nearly all runs were started and have ended, of five types in turn. */
const ROWS = 50_000;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await database.db.query(
    `insert into runs (id, machine_id, request_id, fingerprint, type, plan_id, plan, job_id, attempt, action, initiator, state, created_at)
     select 'run-' || n, 'm-' || n % 500, 'req-' || n, '', (array['REPAVE', 'RMA', 'REBOOT', 'UPGRADE', 'NET_RECONFIG'])[1 + n % 5],
            'plan/reboot', '{}', 'job-' || n, 1, case when n % 1000 = 0 then 'retry' else 'start' end, 'test', 'SUCCEEDED',
            now() - n * interval '1 second'
       from generate_series(1, $1) n`,
    [ROWS],
  );
  await database.db.query("analyze");
});
afterAll(() => database.drop());

const list = (filter: string) => (db: Queryable) =>
  listRunsWithKeys(db, { where: runCondition(parseRunFilter(filter)), limit: 101 });

test.each<[string, RegExp, (db: Queryable) => Promise<unknown>]>([
  ["a request", /runs_one_a_request/, list('request_id="req-7"')],
  [
    "requests of machines",
    /runs_one_a_request/,
    (db) => findByRequests(db, [{ machineId: "m-7", requestId: "req-7" }]),
  ],
  ["how they came about", /runs_by_action/, list("action=retry")],
  ["several ways in which they came about", /runs_by_action/, list("action IN (retry, resume, adopt)")],
  ["a type, newest first", /runs_by_creation/, list("type=UPGRADE")],
  ["having been started, newest first", /runs_by_creation/, list("action=start")],
])("runs are found by %s without reading all of them", async (_, index, call) => {
  const plan = await plansOf(database.db, call);
  expect(plan).toMatch(index);
  expect(plan).not.toMatch(/Seq Scan on runs/);
});
