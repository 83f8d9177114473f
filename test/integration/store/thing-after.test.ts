// @module-tag race
import { expect, test } from "vitest";
import { decide, follow } from "../../../src/kernel/decide.ts";
import { log, observe } from "../../../src/kernel/effects.ts";
import type { Json, Lifecycle, Thing } from "../../../src/kernel/lifecycle.ts";
import { machineLifecycle } from "../../../src/lifecycles/machine/lifecycle.ts";
import { powerShelfLifecycle } from "../../../src/lifecycles/power-shelf/lifecycle.ts";
import * as visits from "../../../src/runs/executor/step/visit.ts";
import { type RunThing, runLifecycle, stepJson } from "../../../src/runs/model/lifecycle.ts";
import { commitUnits } from "../../../src/store/lifecycle/commit/commit-units.ts";
import { thingAfter, type Unit } from "../../../src/store/lifecycle/commit/unit.ts";
import { storeOf } from "../../../src/store/lifecycle/things.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { type RunSurface, startRunSurface } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** A run that goes on in the same lease is not loaded again after each of its own writes. */
let surface: RunSurface;
beforeAll(async () => {
  surface = await startRunSurface();
});
afterAll(() => surface.close());

const store = storeOf(allStores, "run");
const AT = new Date("2026-01-01T00:00:00.123Z");

async function load(id: string): Promise<RunThing> {
  const [run] = (await store.load(surface.db, [id])).things as readonly RunThing[];
  if (!run) throw new Error(`${id} cannot be loaded`);
  return run;
}

async function startedRun(machineId: string): Promise<RunThing> {
  await surface.addMachine(machineId);
  const { runId } = await surface.runs.startRun({ requestId: "once", machineId, type: "REBOOT" });
  const run = await load(runId);
  await commit({ kind: "run", thing: run, move: moveOf(run, "started"), actor: "test" });
  return load(runId);
}

const moveOf = (run: RunThing, event: string) => followed(runLifecycle as unknown as Lifecycle<Thing>, run, event);

async function commit(unit: Unit): Promise<void> {
  const [result] = await surface.db.transaction((tx) => commitUnits(tx, allStores, [unit]));
  expect(result).toEqual({ type: "committed" });
}

/** The database says when a wait began, which no look goes by. */
const withoutSince = (run: RunThing) => ({ ...run, outcome: run.outcome && { ...run.outcome, since: undefined } });

test("what a pass leaves of its run is known, and is what loading it finds", async () => {
  let run = await startedRun("m-known");
  const [step] = run.plan.steps;
  if (!step) throw new Error("the plan has no step");
  const begun = visits.beginVisit(step, AT);
  const announced = visits.announced(visits.withIntent(begun, { bootId: "boot 1" }), {
    instance: "test",
    clock: { now: () => AT, monotonic: () => 0 },
  });
  const said = log(runLifecycle, run.id, [
    { at: AT.toISOString(), step: step.name, stream: "stdout", text: "a line\n" },
  ]);
  const steps = (visit: typeof begun): Json => [stepJson(visit)];
  const looks: ((run: RunThing) => Omit<Unit, "kind" | "thing" | "actor">)[] = [
    () => ({ facts: { steps: steps(begun) }, outcome: { type: "waiting", reason: "its turn" }, effects: [said] }),
    (thing) => ({ move: moveOf(thing, "acting"), facts: { steps: steps(announced) }, outcome: null }),
    () => ({ outcome: { type: "failing", reason: "nobody answers" } }),
    () => ({
      facts: { steps: steps(visits.acted(announced, AT)), residue: ["a medium"], startedAt: AT.toISOString() },
    }),
    () => ({ facts: { steps: steps(visits.succeeded(announced, AT, "booted")), error: null }, outcome: null }),
  ];
  for (const look of looks) {
    const unit: Unit = { kind: "run", thing: run, actor: "test", ...look(run) };
    const known = thingAfter(store, unit) as RunThing | undefined;
    await commit(unit);
    const loaded = await load(run.id);
    expect(known && withoutSince(known)).toEqual(withoutSince(loaded));
    run = known as RunThing;
  }
});

const shelves = storeOf(allStores, "power_shelf");

test("what a move leaves of a shelf is known, and is what loading it finds", async () => {
  await surface.db.query(
    `insert into power_shelves (id, name, bmc_mac, bmc_address, bmc_port, state, power_shelf_maintenance_requested)
     values ('ps-known', 'shelf', '02:00:00:00:00:01', '10.0.0.1', 443, 'fetching_data', $1)`,
    [{ id: "r-1", operation: "power_off", initiator: "test", requested_at: AT.toISOString() }],
  );
  await surface.db.query("insert into work (kind, id) values ('power_shelf', 'ps-known')");
  const loadShelf = async () => (await shelves.load(surface.db, ["ps-known"])).things[0] as Thing;
  const table = powerShelfLifecycle as unknown as Lifecycle<Thing>;
  const moves: ((thing: Thing) => Pick<Unit, "move" | "facts">)[] = [
    (thing) => ({ move: followed(table, thing, "data_fetched"), facts: { serial: "SN-1", capacityWatts: 33_000 } }),
    (thing) => ({ move: followed(table, thing, "configured") }),
    (thing) => ({ move: decided(table, thing) }),
    (thing) => ({ move: followed(table, thing, "operation_completed"), facts: { powerState: "off" } }),
  ];
  let shelf = await loadShelf();
  for (const moving of moves) {
    const unit: Unit = { kind: "power_shelf", thing: shelf, actor: "test", ...moving(shelf), lease: { epoch: 0 } };
    const [result] = await surface.db.transaction((tx) => commitUnits(tx, allStores, [unit]));
    expect(result).toEqual({ type: "committed", stateSince: expect.any(Date) });
    if (result?.type !== "committed") throw new Error("not committed");
    const known = thingAfter(shelves, unit, result.stateSince);
    expect(known).toEqual(await loadShelf());
    shelf = known as Thing;
  }
  // What it is linked to, and so what is detached with it, may be another one by now.
  const removing: Unit = { kind: "power_shelf", thing: { ...shelf, deletedAt: AT } as Thing, actor: "test" };
  const marked = { ...removing, move: decided(table, removing.thing) };
  expect(marked.move?.to).toBe("deleting");
  expect(thingAfter(shelves, marked, AT)).toBeUndefined();
});

function followed(table: Lifecycle<Thing>, thing: Thing, name: string) {
  const move = follow(table, thing, { owner: "handler", name });
  if (!move) throw new Error(`${thing.state.name} knows no ${name}`);
  return move;
}

function decided(table: Lifecycle<Thing>, thing: Thing) {
  const decision = decide(table, thing);
  if (decision.kind !== "move") throw new Error(`${thing.state.name} has no row of its own`);
  return decision.move;
}

test("where a pass moves its run, or does something to its machine, the run is loaded", async () => {
  const run = await startedRun("m-unknown");
  const unit: Unit = { kind: "run", thing: run, actor: "test" };
  const learnt = observe(machineLifecycle, run.target.id, {});
  expect(thingAfter(store, { ...unit, move: moveOf(run, "finished") })).toBeUndefined();
  expect(thingAfter(store, { ...unit, effects: [learnt] })).toBeUndefined();
  expect(thingAfter(store, unit)).toBeDefined();
});

test("what others changed meanwhile is not written over: the next pass's outcome is dropped", async () => {
  const run = await startedRun("m-changed");
  const unit: Unit = { kind: "run", thing: run, actor: "test", facts: { residue: ["a medium"] } };
  const known = thingAfter(store, unit) as RunThing;
  await commit(unit);
  await surface.runs.cancelRun({ runId: run.id });
  const next: Unit = { kind: "run", thing: known, actor: "test", facts: { residue: [] } };
  const results = await surface.db.transaction((tx) => commitUnits(tx, allStores, [next]));
  expect(results).toEqual([{ type: "conflict" }]);
  expect((await load(run.id)).facts.residue).toEqual(["a medium"]);
});
