// @module-tag race
import { afterAll, beforeAll, describe, type expect, test, vi } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { diedAt, letGoOn, type Place as PlaceOf, placesOf, setAside } from "../support/processes/places.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { startProgram } from "../support/processes/programs.ts";
import { cancelRigRun, POSITIONS, type Position, type RigVictimOrder } from "../support/processes/rig-victim.ts";
import { addRig, createRigTables } from "../support/rigs/rig.ts";
import { rigStores, startRigEngine, startRigRun } from "../support/rigs/rig-engine.ts";

/**
 * Kill -9 at every fail point that a run with children comes through, wherever parent and children are: another replica finishes
 * them, no child is started twice, every device hears of its command once, and nothing is left claimed.
 */
const GADGETS = 3;
type Place = PlaceOf<Position>;
/** At the most, until one of them comes by a place. */
const MOST_RUNS = 10;
const SCENARIOS = {
  "carries out": { state: "SUCCEEDED", children: GADGETS },
  cancels: { state: "CANCELED", cancelsAfter: 2 },
} as const;
type Scenario = (typeof SCENARIOS)[keyof typeof SCENARIOS];

vi.setConfig({ maxConcurrency: Object.keys(SCENARIOS).length });

let bench: ProcessBench;
beforeAll(() => {
  bench = openProcessBench();
});
afterAll(() => bench.close());

interface Killed {
  readonly place: Place;
  readonly rigId: string;
  readonly gadgets: readonly string[];
}

describe("a replica that", { concurrent: true, timeout: 900_000 }, () => {
  test.for(Object.entries(SCENARIOS))(
    "%s a run with children can die at any fail point: nothing is lost, doubled or half done",
    async ([name, scenario], { expect, onTestFinished }) => {
      const database = await createTestDatabase();
      onTestFinished(() => database.drop());
      await createRigTables(database.db);
      const lane = new Lane(database, scenario, name);
      const places = await lane.findPlaces();
      const positions = new Set(places.map(({ position }) => position));
      for (const certain of CERTAIN[name as keyof typeof SCENARIOS]) expect(positions).toContain(certain);
      for (const place of places) await lane.killAt(place);
      await lane.finishAll();
      for (const killed of lane.killed) await lane.expectWhole(killed, expect);
      expect(await database.db.query("select * from claims")).toEqual([]);
    },
  );
});

const CERTAIN: Readonly<Record<keyof typeof SCENARIOS, readonly Position[]>> = {
  "carries out": ["parent PENDING", "parent before", "parent starting more", "parent summing up", "child announced"],
  cancels: ["parent stopping children", "parent ending", "child canceling"],
};

class Lane {
  readonly killed: Killed[] = [];
  readonly #database: TestDatabase;
  readonly #scenario: Scenario;
  readonly #name: string;
  #rigs = 0;

  constructor(database: TestDatabase, scenario: Scenario, name: string) {
    this.#database = database;
    this.#scenario = scenario;
    this.#name = name.replace(" ", "-");
  }

  get #cancelsAfter(): number | undefined {
    return "cancelsAfter" in this.#scenario ? this.#scenario.cancelsAfter : undefined;
  }

  async #start(instance: string, place?: Place) {
    this.#rigs += 1;
    const rigId = `${this.#name}-${this.#rigs}`;
    const gadgets = await addRig(this.#database.db, rigStores, rigId, GADGETS);
    if (this.#cancelsAfter !== undefined)
      await this.#database.db.query("update gadget_world set held = true where id = any($1)", [gadgets]);
    const order: RigVictimOrder = {
      url: this.#database.url,
      instance,
      rigId,
      gadgets,
      kind: "poke_few",
      ...(this.#cancelsAfter !== undefined && { cancelsAfter: this.#cancelsAfter }),
      ...(place && { place }),
    };
    const victim = await startProgram(bench, { program: "rig-victim.ts", args: [JSON.stringify(order)] });
    return { victim, rigId, gadgets };
  }

  async findPlaces(): Promise<Place[]> {
    const { victim } = await this.#start("undisturbed");
    const places = await placesOf<Position>(victim);
    return places.sort((a, b) => POSITIONS.indexOf(a.position) - POSITIONS.indexOf(b.position));
  }

  /** Which passes a cancel meets is a matter of moments: a run that did not come by the place makes way for another one. */
  async killAt(place: Place): Promise<void> {
    for (let left = MOST_RUNS; left > 0; left -= 1) if (await this.#diesAt(place)) return;
    throw new Error(`${MOST_RUNS} runs did not come by ${place.failPoint} (${place.position})`);
  }

  async #diesAt(place: Place): Promise<boolean> {
    const { victim, rigId, gadgets } = await this.#start(`${place.position}, ${place.failPoint}`, place);
    if (!(await diedAt(place, victim))) return false;
    await setAside(this.#database.db);
    this.killed.push({ place, rigId, gadgets });
    return true;
  }

  /** As if the time of all leases had passed: another replica finishes what the dead ones left, and their callers ask again. */
  async finishAll(): Promise<void> {
    const { db } = this.#database;
    const successor = await startRigEngine(db, { instance: "successor" });
    try {
      for (const { rigId } of this.killed) {
        const runId = await startRigRun(db, rigId, ["poke_few"]);
        if (this.#cancelsAfter !== undefined) await cancelRigRun(db, runId);
      }
      await letGoOn(db);
      const active =
        "select id, state, outcome, facts -> 'steps' as steps from runs where state in ('PENDING', 'RUNNING')";
      await eventually(async () => (await db.query(active)).length === 0, {
        what: "all runs have ended",
        within: 120_000,
        seen: async () => JSON.stringify(await db.query(active), null, 1),
      });
    } finally {
      await successor.stop();
    }
  }

  async expectWhole({ place, rigId, gadgets }: Killed, is: typeof expect): Promise<void> {
    const { db } = this.#database;
    const where = `${place.failPoint} (${place.position})`;
    const runs = await db.query<{ id: string; state: string; target_id: string; parent_run_id: string | null }>(
      "select id, state, target_id, parent_run_id from runs where target_id = $1 or target_id = any($2)",
      [rigId, gadgets],
    );
    const [parent, ...others] = runs.filter(({ parent_run_id }) => parent_run_id === null);
    is(others, where).toEqual([]);
    is(parent, where).toMatchObject({ state: this.#scenario.state });
    const children = runs.filter(({ parent_run_id }) => parent_run_id !== null);
    is(new Set(children.map(({ target_id }) => target_id)).size, where).toBe(children.length);
    is(new Set(children.map(({ state }) => state)), where).toEqual(
      new Set(children.length === 0 ? [] : [this.#scenario.state]),
    );
    const world = await db.query<{ id: string; pokes: number; undone: number }>(
      "select id, pokes, undone from gadget_world where id = any($1)",
      [gadgets],
    );
    if ("children" in this.#scenario) {
      is(children, where).toHaveLength(this.#scenario.children);
      is(
        world.map(({ pokes, undone }) => ({ pokes, undone })),
        where,
      ).toEqual(gadgets.map(() => ({ pokes: 1, undone: 0 })));
    }
    // Undone where it was begun; doing that again is harmless.
    for (const { pokes, undone } of world) {
      is(pokes, where).toBeLessThanOrEqual(1);
      if (this.#scenario.state === "CANCELED" && pokes > 0) is(undone, where).toBeGreaterThanOrEqual(1);
    }
    for (const { id } of runs) is(await logNumbers(db, id), `${where}: the log has no hole`).toBe(true);
  }
}

async function logNumbers(db: TestDatabase["db"], runId: string): Promise<boolean> {
  const rows = await db.query<{ seq: number }>("select seq from run_logs where run_id = $1 order by seq", [runId]);
  return rows.every(({ seq }, at) => seq === at + 1);
}
