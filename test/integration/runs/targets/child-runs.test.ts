// @module-tag race
import { describe, expect, test } from "vitest";
import { cancelRun } from "../../../../src/services/run/cancel.ts";
import type { SecretStore } from "../../../../src/store/access/secrets.ts";
import { applyVerb } from "../../../../src/store/lifecycle/verbs.ts";
import { createTestDatabase, type TestDatabase } from "../../../support/database.ts";
import { eventually } from "../../../support/eventually.ts";
import { addRig, createRigTables } from "../../../support/rigs/rig.ts";
import { type RigEngine, rigStores, startRigEngine, startRigRun } from "../../../support/rigs/rig-engine.ts";
import { tester } from "../../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../../support/second-try.ts";

/** Runs that steps of other runs start, on a real database, by two replicas that take whatever is due. */
let database: TestDatabase;
let replicas: RigEngine[];
beforeAll(async () => {
  database = await createTestDatabase();
  await createRigTables(database.db);
  replicas = [
    await startRigEngine(database.db, { instance: "one" }),
    await startRigEngine(database.db, { instance: "two" }),
  ];
});
afterAll(async () => {
  for (const replica of replicas) await replica.stop();
  await database.drop();
});

let rigs = 0;
const aRig = async (count: number) => {
  rigs += 1;
  const id = `rig-${rigs}`;
  return { id, gadgets: await addRig(database.db, rigStores, id, count) };
};

interface RunRow {
  readonly id: string;
  readonly state: string;
  readonly target_id: string;
  readonly message: string;
  readonly steps: readonly { readonly name: string; readonly state: string; readonly message?: string }[];
}
const COLUMNS = `id, state, target_id, coalesce(facts -> 'error' ->> 'message', '') as message, coalesce(facts -> 'steps', '[]') as steps`;
const runOf = async (id: string): Promise<RunRow> => {
  const [row] = await database.db.query<RunRow>(`select ${COLUMNS} from runs where id = $1`, [id]);
  if (!row) throw new Error(`there is no ${id}`);
  return row;
};
const childrenOf = (id: string) =>
  database.db.query<RunRow>(`select ${COLUMNS} from runs where parent_run_id = $1 order by created_at, target_id`, [
    id,
  ]);
const isOver = ({ state }: RunRow) => !["PENDING", "RUNNING"].includes(state);

const ended = async (id: string): Promise<RunRow> => {
  await eventually(async () => isOver(await runOf(id)), {
    what: `${id} has ended`,
    within: 40_000,
    seen: async () => JSON.stringify([await runOf(id), ...(await childrenOf(id))], null, 1),
  });
  return runOf(id);
};
const world = (gadgets: readonly string[]) =>
  database.db.query<{ pokes: number; undone: number }>(
    "select pokes, undone from gadget_world where id = any($1) order by array_position($1, id)",
    [gadgets],
  );
const set = (gadgets: readonly string[], change: string) =>
  database.db.query(`update gadget_world set ${change} where id = any($1)`, [gadgets]);
const rigState = async (id: string) =>
  (await database.db.query<{ state: string }>("select state from rigs where id = $1", [id]))[0]?.state;

const cancel = (id: string) =>
  cancelRun({ db: database.db, stores: rigStores, secrets: {} as SecretStore, maxFindByIds: 100 }, tester, id);
const scrap = (kind: string, id: string) =>
  database.db.transaction((tx) =>
    applyVerb(tx, rigStores, { kind, id, owner: "caller", name: "scrap", actor: "tester" }),
  );

/** No claim, no work and no active run is left of it. */
async function expectNothingLeft(runId: string): Promise<void> {
  const runs = [runId, ...(await childrenOf(runId)).map(({ id }) => id)];
  expect((await Promise.all(runs.map(runOf))).filter((run) => !isOver(run))).toEqual([]);
  expect(await database.db.query("select * from claims where holder_id = any($1)", [runs])).toEqual([]);
}

describe("a step that starts runs on other things", () => {
  test("has one run for each, awaits them, and sums them up", async () => {
    const { id, gadgets } = await aRig(6);
    const runId = await startRigRun(database.db, id, ["poke_all"]);
    expect(await ended(runId)).toMatchObject({
      state: "SUCCEEDED",
      steps: [{ name: "poke_all", state: "SUCCEEDED", message: "6 of 6 succeeded" }],
    });
    const children = await childrenOf(runId);
    expect(children.map(({ target_id }) => target_id).sort()).toEqual(gadgets.toSorted());
    expect(children.every(({ state }) => state === "SUCCEEDED")).toBe(true);
    expect(await world(gadgets)).toEqual(gadgets.map(() => ({ pokes: 1, undone: 0 })));
    expect(await rigState(id)).toBe("idle");
    await expectNothingLeft(runId);
  });

  test("starts no more than so many at a time, and the next once one has ended", async () => {
    const { id, gadgets } = await aRig(7);
    await set(gadgets, "held = true");
    const runId = await startRigRun(database.db, id, ["poke_all"]);
    const begun = async () => (await world(gadgets)).filter(({ pokes }) => pokes > 0).length;
    await eventually(async () => (await begun()) === 4, { what: "four are begun" });
    expect(await childrenOf(runId)).toHaveLength(4);
    const [first] = await childrenOf(runId);
    await set([first?.target_id ?? ""], "held = false");
    await eventually(async () => (await childrenOf(runId)).length === 5, { what: "the next is started" });
    await set(gadgets, "held = false");
    expect(await ended(runId)).toMatchObject({ state: "SUCCEEDED" });
    expect(await begun()).toBe(7);
  });

  test("has a hundred of them at once", { timeout: 60_000 }, async () => {
    const { id, gadgets } = await aRig(100);
    const runId = await startRigRun(database.db, id, ["poke_together", "poke_all"]);
    expect(await ended(runId)).toMatchObject({ state: "SUCCEEDED" });
    expect(await childrenOf(runId)).toHaveLength(200);
    expect(await world(gadgets)).toEqual(gadgets.map(() => ({ pokes: 2, undone: 0 })));
    await expectNothingLeft(runId);
  });

  test("on nothing is done at once", async () => {
    const { id } = await aRig(0);
    expect(await ended(await startRigRun(database.db, id, ["poke_all"]))).toMatchObject({ state: "SUCCEEDED" });
  });

  test("fails once all have ended where one has failed, and says which and why", async () => {
    const { id, gadgets } = await aRig(5);
    await set(gadgets.slice(1, 3), "refuses = true");
    const runId = await startRigRun(database.db, id, ["poke_all"]);
    const run = await ended(runId);
    expect(run).toMatchObject({ state: "FAILED" });
    expect(run.message).toContain("3 of 5 succeeded");
    expect(run.message).toMatch(new RegExp(`gadget ${gadgets[1]} \\(poke: it refuses\\)`));
    expect(await rigState(id)).toBe("broken");
    await expectNothingLeft(runId);
  });

  test("may be content with less", async () => {
    const { id, gadgets } = await aRig(4);
    await set(gadgets.slice(0, 2), "refuses = true");
    expect(await ended(await startRigRun(database.db, id, ["poke_half"]))).toMatchObject({ state: "SUCCEEDED" });
    const other = await aRig(4);
    await set(other.gadgets.slice(0, 3), "refuses = true");
    expect(await ended(await startRigRun(database.db, other.id, ["poke_half"]))).toMatchObject({
      state: "FAILED",
      message: "poke_half: too few have succeeded",
    });
  });

  test("may end with the first failure: then nothing more is started, and what runs is canceled", async () => {
    const { id, gadgets } = await aRig(6);
    await set(gadgets.slice(0, 1), "refuses = true");
    await set(gadgets.slice(1), "held = true");
    const runId = await startRigRun(database.db, id, ["poke_carefully"]);
    expect(await ended(runId)).toMatchObject({ state: "FAILED" });
    const children = await childrenOf(runId);
    expect(children.length).toBeLessThanOrEqual(3);
    expect(new Set(children.map(({ state }) => state))).toEqual(new Set(["FAILED", "CANCELED"]));
    await expectNothingLeft(runId);
  });

  test("cancels what still runs when its time is over", async () => {
    const { id, gadgets } = await aRig(3);
    await set(gadgets, "held = true");
    const runId = await startRigRun(database.db, id, ["poke_soon"]);
    const run = await ended(runId);
    expect(run).toMatchObject({ state: "FAILED" });
    expect(run.message).toContain("not done within 2s");
    const children = await childrenOf(runId);
    expect(children.map(({ state }) => state)).toEqual(["CANCELED", "CANCELED"]);
    expect(await world(gadgets)).toEqual([
      { pokes: 1, undone: 1 },
      { pokes: 1, undone: 1 },
      { pokes: 0, undone: 0 },
    ]);
  });
});

describe("cancel", () => {
  test("of the parent reaches its children, which undo what they began, and the parent ends after them", async () => {
    const { id, gadgets } = await aRig(6);
    await set(gadgets, "held = true");
    const runId = await startRigRun(database.db, id, ["poke_all"]);
    await eventually(async () => (await world(gadgets)).filter(({ pokes }) => pokes > 0).length === 4, {
      what: "four are begun",
    });
    await cancel(runId);
    expect(await ended(runId)).toMatchObject({ state: "CANCELED" });
    const children = await childrenOf(runId);
    expect(children.map(({ state }) => state)).toEqual(["CANCELED", "CANCELED", "CANCELED", "CANCELED"]);
    expect((await world(gadgets)).filter(({ undone }) => undone > 0)).toHaveLength(4);
    expect(await rigState(id)).toBe("idle");
    const [last] = await database.db.query<{ kind: string; id: string }>(
      "select id from journal where kind = 'run' and to_state = 'CANCELED' and id = any($1) order by xid desc, seq desc limit 1",
      [[runId, ...children.map((child) => child.id)]],
    );
    expect(last?.id).toBe(runId);
    const canceledBy = await database.db.query(
      "select distinct actor from journal where kind = 'run' and type = 'cancel_requested' and id = any($1)",
      [children.map((child) => child.id)],
    );
    expect(canceledBy).toEqual([{ actor: `run ${runId}` }]);
    await expectNothingLeft(runId);
  });

  test("of a child fails that device in the sum, and no other", async () => {
    const { id, gadgets } = await aRig(3);
    await set(gadgets.slice(0, 1), "held = true");
    const runId = await startRigRun(database.db, id, ["poke_all"]);
    await eventually(async () => (await childrenOf(runId)).filter(isOver).length === 2, { what: "two have ended" });
    const child = (await childrenOf(runId)).find((each) => !isOver(each));
    await cancel(child?.id ?? "");
    const run = await ended(runId);
    expect(run).toMatchObject({ state: "FAILED" });
    expect(run.message).toContain(`2 of 3 succeeded; canceled: gadget ${gadgets[0]}`);
  });

  test("at any moment ends parent and children, whatever they are at", { timeout: 90_000 }, async () => {
    const runs: { readonly runId: string; readonly gadgets: readonly string[] }[] = [];
    for (let moment = 0; moment < 12; moment += 1) {
      const { id, gadgets } = await aRig(5);
      const runId = await startRigRun(database.db, id, ["poke_all", "poke_together"]);
      await new Promise((resolve) => setTimeout(resolve, moment * 12));
      await cancel(runId).catch(() => undefined); // it may have succeeded by then
      runs.push({ runId, gadgets });
    }
    for (const { runId, gadgets } of runs) {
      const run = await ended(runId);
      expect(["CANCELED", "SUCCEEDED"]).toContain(run.state);
      const children = await childrenOf(runId);
      const of = (gadget: string) => children.filter(({ target_id }) => target_id === gadget).length;
      const pokes = await world(gadgets);
      for (const [at, gadget] of gadgets.entries()) expect(pokes[at]?.pokes).toBeLessThanOrEqual(of(gadget));
      await expectNothingLeft(runId);
    }
  });
});

describe("a target that is deleted", () => {
  test("while a child works on it fails that child, and so the parent", async () => {
    const { id, gadgets } = await aRig(3);
    await set(gadgets.slice(0, 1), "held = true");
    const runId = await startRigRun(database.db, id, ["poke_all"]);
    await eventually(async () => (await childrenOf(runId)).filter(isOver).length === 2, { what: "two have ended" });
    await scrap("gadget", gadgets[0] ?? "");
    const run = await ended(runId);
    expect(run).toMatchObject({ state: "FAILED" });
    expect(run.message).toContain(`gadget ${gadgets[0]} does not exist any more`);
    await expectNothingLeft(runId);
  });

  test("while its own run has children ends them all", async () => {
    const { id, gadgets } = await aRig(3);
    await set(gadgets, "held = true");
    const runId = await startRigRun(database.db, id, ["poke_all"]);
    await eventually(async () => (await world(gadgets)).every(({ pokes }) => pokes === 1), { what: "all are begun" });
    await scrap("rig", id);
    const run = await ended(runId);
    expect(run).toMatchObject({ state: "FAILED" });
    expect(run.message).toContain(`rig ${id} does not exist any more`);
    expect((await childrenOf(runId)).map(({ state }) => state)).toEqual(["CANCELED", "CANCELED", "CANCELED"]);
    await expectNothingLeft(runId);
  });
});
