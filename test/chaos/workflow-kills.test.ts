// @module-tag race
import { afterAll, beforeAll, describe, type expect, test, vi } from "vitest";
import { systemClock } from "../../src/kernel/time/clock.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import {
  ASSEMBLY,
  type AssemblyVictimOrder,
  askForAssembly,
  assemblyEnded,
} from "../support/processes/assembly-victim.ts";
import { diedAt, letGoOn, type Place, placesOf, setAside } from "../support/processes/places.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { startProgram } from "../support/processes/programs.ts";
import { addRig, createRigTables } from "../support/rigs/rig.ts";
import { type RigEngine, rigStores, startRigEngine } from "../support/rigs/rig-engine.ts";
import type { AssemblyParams } from "../support/workflows/assembly.ts";
import { PartServer } from "../support/workflows/part-server.ts";

/**
 * Kill -9 of a replica that carries out a workflow which goes back a stage, skips one and keeps receipts, or that cancels a failed job of
 * it by undoing every stage. Another replica finishes the job: no part is made or left twice, and no stage is lost.
 */
const SCENARIOS = {
  "carries out a workflow": { state: "SUCCEEDED", broken: "" },
  "cancels a failed job": { state: "CANCELED", broken: "roof" },
} as const;
type Name = keyof typeof SCENARIOS;

const MADE = ["made base", "made frame", "unmade frame", "made base", "made frame"];
const DEEDS: Readonly<Record<Name, readonly string[]>> = {
  "carries out a workflow": [...MADE, "made roof"],
  "cancels a failed job": [...MADE, "unmade frame", "unmade base", "unmade base"],
};
const VISITS = [
  "base 1 SUCCEEDED",
  "paint 1 SKIPPED",
  "frame 1 FAILED",
  "inspect 1 SUCCEEDED",
  "base 2 SUCCEEDED",
  "paint 2 SKIPPED",
  "frame 2 SUCCEEDED",
];
/** What a run comes by, however fast or slow it is. */
const CERTAIN: Readonly<Record<Name, readonly string[]>> = {
  "carries out a workflow": ["PENDING", "base 1 announced", "frame 1 FAILED", "frame 2 announced", "roof 1 announced"],
  "cancels a failed job": ["PENDING with", "RUNNING with"],
};

vi.setConfig({ maxConcurrency: Object.keys(SCENARIOS).length });

let bench: ProcessBench;
let parts: PartServer;
beforeAll(async () => {
  bench = openProcessBench();
  parts = await PartServer.start();
});
afterAll(async () => {
  await bench.close();
  await parts.close();
});

describe("a replica that", { concurrent: true, timeout: 300_000 }, () => {
  test.for(Object.keys(SCENARIOS) as Name[])(
    "%s can die at any fail point: nothing is lost, doubled or half done",
    async (name, { expect, onTestFinished }) => {
      const database = await createTestDatabase();
      onTestFinished(() => database.drop());
      await createRigTables(database.db);
      const lane = new Lane(database, name);
      const places = await lane.findPlaces();
      for (const certain of CERTAIN[name])
        expect(
          places.some(({ position }) => position.startsWith(certain)),
          certain,
        ).toBe(true);
      for (const place of chosenFrom(places)) await lane.killAt(place);
      await lane.finishAll();
      for (const job of lane.jobs) await lane.expectWhole(job, expect);
      expect(await database.db.query("select * from claims")).toEqual([]);
    },
  );
});

/** In every position the last moment before its commit and the first one after it; the other fail points in turn, each in one position. */
const ALWAYS = ["controller:handled", "committer:after"];
function chosenFrom(places: readonly Place[]): Place[] {
  const chosen = places.filter(({ failPoint }) => ALWAYS.includes(failPoint));
  const others = Map.groupBy(places, ({ failPoint }) => failPoint);
  for (const name of ALWAYS) others.delete(name);
  for (const [at, ofOne] of [...others.values()].entries()) {
    const place = ofOne[at % ofOne.length];
    if (place) chosen.push(place);
  }
  return chosen;
}

interface Job {
  readonly where: string;
  readonly order: Pick<AssemblyVictimOrder, "rigId" | "params" | "cancels">;
}

class Lane {
  readonly jobs: Job[] = [];
  readonly #database: TestDatabase;
  readonly #name: Name;
  #count = 0;

  constructor(database: TestDatabase, name: Name) {
    this.#database = database;
    this.#name = name;
  }

  async findPlaces(): Promise<Place[]> {
    return placesOf(await this.#start("undisturbed"));
  }

  async killAt(place: Place): Promise<void> {
    const victim = await this.#start(`${place.failPoint} (${place.position})`, place);
    if (!(await diedAt(place, victim))) throw new Error(`it did not come by ${place.failPoint} (${place.position})`);
    await setAside(this.#database.db);
  }

  /** Their callers ask again. */
  async finishAll(): Promise<void> {
    const { db } = this.#database;
    const successor = await this.#startEngine("successor");
    try {
      const ids = [];
      for (const { order } of this.jobs) ids.push(await askForAssembly(db, order));
      await letGoOn(db);
      for (const id of ids) await assemblyEnded(db, id);
    } finally {
      await successor.stop();
    }
  }

  async expectWhole({ where, order: { rigId, params } }: Job, is: typeof expect): Promise<void> {
    const { state, broken } = SCENARIOS[this.#name];
    is(parts.deedsOf(params.job), where).toEqual(DEEDS[this.#name]);
    is(
      parts.partsOf(params.job).map(({ stage }) => stage),
      where,
    ).toEqual(state === "SUCCEEDED" ? ["base", "base", "frame", "roof"] : []);
    const runs = await this.#database.db.query<{ state: string; visits: string[] | null; receipts: string[] | null }>(
      `select state,
              (select array_agg(concat_ws(' ', s ->> 'name', coalesce(s ->> 'round', '1'), s ->> 'state') order by n)
                 from jsonb_array_elements(facts -> 'steps') with ordinality as t(s, n)) as visits,
              (select array_agg(s -> 'receipt' ->> 'id') filter (where s -> 'receipt' is not null)
                 from jsonb_array_elements(facts -> 'steps') as s) as receipts
         from runs where target_id = $1 order by created_at`,
      [rigId],
    );
    is(runs[0]?.visits, where).toEqual([...VISITS, broken === "" ? "roof 1 SUCCEEDED" : "roof 1 FAILED"]);
    is(
      runs.map((run) => run.state),
      where,
    ).toEqual(broken === "" ? [state] : ["FAILED", state]);
    // One that was kept names a part that was made, and no two name the same.
    const receipts = runs[0]?.receipts ?? [];
    is(new Set(receipts).size, where).toBe(receipts.length);
  }

  async #start(where: string, place?: Place) {
    this.#count += 1;
    const { db, url } = this.#database;
    const rigId = `rig-${this.#count}`;
    await addRig(db, rigStores, rigId, 1);
    const { broken } = SCENARIOS[this.#name];
    const params: AssemblyParams = { parts: parts.url, job: `${this.#name} ${this.#count}`, crooked: "1", broken };
    const cancels = broken === "" ? undefined : await this.#failJob(rigId, params);
    const order = { rigId, params, ...(cancels !== undefined && { cancels }) };
    this.jobs.push({ where, order });
    const victim: AssemblyVictimOrder = { url, instance: where, ...order, ...(place && { place }) };
    return startProgram(bench, { program: "assembly-victim.ts", args: [JSON.stringify(victim)] });
  }

  /** A job whose last stage fails, while nobody is killed. */
  async #failJob(rigId: string, params: AssemblyParams): Promise<string> {
    const { db } = this.#database;
    const engine = await this.#startEngine(`failing ${rigId}`);
    const id = await askForAssembly(db, { rigId, params });
    await assemblyEnded(db, id);
    await engine.stop();
    return id;
  }

  /** What is open whether a device heard of it has had its time. */
  #startEngine(instance: string): Promise<RigEngine> {
    const now = () => new Date(Date.now() + 31_000);
    return startRigEngine(this.#database.db, { instance, kinds: ASSEMBLY, clock: { ...systemClock, now } });
  }
}
