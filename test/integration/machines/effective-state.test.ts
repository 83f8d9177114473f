import { expect, test } from "vitest";
import { effectiveState, effectiveStateSql } from "../../../src/lifecycles/machine/effective-state.ts";
import { MACHINE_PHASES } from "../../../src/lifecycles/machine/machine.ts";
import { isActive, RUN_PHASES } from "../../../src/runs/model/run.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
});
afterAll(() => database.drop());

const MAYBE = [true, false, null] as const;
const combinations = MACHINE_PHASES.flatMap((phase) =>
  [...RUN_PHASES, null].flatMap((runPhase) => MAYBE.map((inCluster) => ({ phase, runPhase, inCluster }))),
);

test("the state that a list filters by is the state that it shows, in every combination", async () => {
  const sql = effectiveStateSql({
    phase: "m.phase",
    runIsActive: "m.run_phase in ('PENDING', 'RUNNING')",
    inCustomerCluster: "m.in_cluster",
  });
  const rows = await database.db.query<{ state: string }>(
    `select ${sql} as state
       from unnest($1::text[], $2::text[], $3::boolean[]) with ordinality as m(phase, run_phase, in_cluster, place)
      order by place`,
    [
      combinations.map(({ phase }) => phase),
      combinations.map(({ runPhase }) => runPhase),
      combinations.map(({ inCluster }) => inCluster),
    ],
  );
  const shown = combinations.map(({ phase, runPhase, inCluster }) =>
    effectiveState({
      phase,
      runIsActive: runPhase !== null && isActive(runPhase),
      inCustomerCluster: inCluster ?? false,
    }),
  );
  expect(combinations).toHaveLength(7 * 6 * 3);
  expect(rows.map(({ state }, at) => ({ ...combinations[at], state }))).toEqual(
    combinations.map((combination, at) => ({ ...combination, state: shown[at] })),
  );
});

test("an index can hold it, and the filter uses that", async () => {
  const columns = { phase: "phase", runIsActive: "active_run_id is not null", inCustomerCluster: "in_cluster" };
  const expression = effectiveStateSql(columns);
  await database.db.query(
    `create table shown_machines (id int primary key, phase text not null, active_run_id text, in_cluster boolean not null)`,
  );
  await database.db.query(`create index on shown_machines ((${expression}))`);
  await database.db.query(
    `insert into shown_machines
     select i, 'READY', case when i % 1000 = 0 then 'run' end, false from generate_series(1, 20000) as i`,
  );
  await database.db.query("analyze shown_machines");
  const plan = await database.db.query<{ "QUERY PLAN": string }>(
    `explain select id from shown_machines where ${expression} = 'PROVISIONING'`,
  );
  expect(plan.map((line) => line["QUERY PLAN"]).join("\n")).toMatch(/Index/);
});
