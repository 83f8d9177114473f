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
/** Runs on these bays are not begun before their gate opens. */
const begins = new Map<string, PromiseWithResolvers<void>>();
const held =
  (handlers: HandlerOf): HandlerOf =>
  (state) => {
    const handle = handlers(state);
    return (
      handle &&
      (async (thing, call) => {
        if ((thing as RunThing).parent) await gate.promise;
        else if (state === "PENDING") await begins.get((thing as RunThing).target.id)?.promise;
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

const endOfRequest = async (bay: string) => {
  const [row] = await database.db.query<{ outcome: string | null }>(
    "select last_maintenance_request ->> 'outcome' as outcome from bays where id = $1",
    [bay],
  );
  return row?.outcome;
};

test("a cancel while the run is PENDING leads the bay out of maintenance", async () => {
  const { db } = database;
  const deps = { db, stores: bayStores, steps: baySteps, workflows: bayWorkflows } as unknown as RunDeps;
  const begin = Promise.withResolvers<void>();
  begins.set("b-0", begin);
  await addBay(db, "b-0", 1);
  await requestMaintenance(db, "b-0");
  const runId = await oneOf("b-0", "r.state = 'PENDING'");
  await cancelRun(deps, tester, runId);
  begin.resolve();
  await oneOf("b-0", "r.state = 'CANCELED'");
  const [bay] = await db.query<{ state: string }>("select state from bays where id = 'b-0'");
  expect(bay?.state).toBe("ready");
  expect(await runsOf("b-0", "r.parent_run_id is not null"), "nothing of it was begun").toEqual([]);
  expect(await db.query("select * from claims where holder_id = 'b-0'")).toEqual([]);
});

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
  expect(await endOfRequest("b-1"), "a failed run ends its request as failed").toBe("failed");
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
