import { expect, test } from "vitest";
import type { HandlerOf } from "../../../src/engine/pass.ts";
import type { RunThing } from "../../../src/runs/model/lifecycle.ts";
import { cancelRun } from "../../../src/services/run/cancel.ts";
import type { RunDeps } from "../../../src/services/run/deps.ts";
import { markRunManual, startNextAttempt } from "../../../src/services/run/operator-actions.ts";
import { cancelJob } from "../../../src/services/run/workflow-actions.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { baySteps, bayWorkflows, createBayTables } from "../../support/rigs/bay.ts";
import { addBay, bayStores, requestMaintenance, startBayEngine } from "../../support/rigs/bay-engine.ts";
import { createRigTables } from "../../support/rigs/rig.ts";
import { tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** A run that a thing started works under the thing's claims. */
let database: TestDatabase;
let engine: Awaited<ReturnType<typeof startBayEngine>>;
/** No run that another one started goes on before. */
const gate = Promise.withResolvers<void>();
const held =
  (handlers: HandlerOf): HandlerOf =>
  (state) => {
    const handle = handlers(state);
    return (
      handle &&
      (async (thing, call) => {
        if ((thing as RunThing).parent) await gate.promise;
        return handle(thing, call);
      })
    );
  };
beforeAll(async () => {
  database = await createTestDatabase();
  await createRigTables(database.db);
  await createBayTables(database.db);
  engine = await startBayEngine(database.db, { around: held });
});
afterAll(async () => {
  await engine.stop();
  await database.drop();
});

const runsOf = (bay: string, where: string) =>
  database.db.query<{ id: string }>(
    `select r.id from runs r left join runs p on p.id = r.parent_run_id where coalesce(p.target_id, r.target_id) = $1 and ${where}`,
    [bay],
  );
const oneOf = (bay: string, where: string) =>
  eventually(async () => (await runsOf(bay, where))[0]?.id, { what: `there is a run of ${bay} with ${where}` });

test("no further attempt is made at the job of such a run: its thing has gone on, and would wait for none", async () => {
  const { db } = database;
  const deps = { db, stores: bayStores, steps: baySteps, workflows: bayWorkflows } as unknown as RunDeps;
  await addBay(db, "b-1", 2);
  await requestMaintenance(db, "b-1");
  await cancelRun(
    deps,
    tester,
    await oneOf("b-1", "r.parent_run_id is not null and r.state in ('PENDING', 'RUNNING')"),
  );
  gate.resolve();
  const runId = await oneOf("b-1", "r.parent_run_id is null and r.state = 'FAILED'");
  const refusal = {
    kind: "failed_precondition",
    message: `run ${runId} was started by bay b-1 and can only be canceled while it is active`,
  };
  const request = { runId, requestId: "again" };
  await expect(cancelJob(deps, tester, request)).rejects.toMatchObject(refusal);
  await expect(startNextAttempt(deps, tester, "retry", request)).rejects.toMatchObject(refusal);
  await expect(markRunManual(deps, tester, { runId, comment: "mine" })).rejects.toMatchObject(refusal);
  expect(await runsOf("b-1", "r.parent_run_id is null")).toHaveLength(1);
  expect(await db.query("select * from claims")).toEqual([]);
});
