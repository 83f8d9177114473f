import { join } from "node:path";
import { seedWriter } from "../../../src/providers/seeds/seed.ts";
import { createPlan } from "../../../src/services/run/plans.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { eventually } from "../eventually.ts";
import type { MachineTruth } from "../machine-site.ts";
import { putSiteOnRecord, serveSeeds, tester } from "../run-bench.ts";
import type { StepOnce } from "../step-kinds.ts";
import type { ProcessBench } from "./process-bench.ts";
import { startProgram } from "./programs.ts";
import { openRunReplica } from "./run-replica.ts";
import { type Place, POSITIONS, type Position, startOnce, type VictimOrder } from "./run-victim.ts";
import { type SimulatorProcess, startSimulatorProcess } from "./simulator-process.ts";

/** A run whose replica was killed. */
export interface Killed {
  readonly place: Place;
  readonly machineId: string;
  readonly before: MachineTruth;
  /** What was on record when the replica died; absent when nothing was. */
  readonly atDeath: RunOnRecord | undefined;
}

export interface RunOnRecord {
  readonly id: string;
  readonly state: string;
  readonly error: { readonly message: string } | null;
  readonly steps: readonly StepOnRecord[];
}

export interface StepOnRecord {
  readonly name: string;
  readonly state: string;
  readonly retryCount: number;
  readonly evidence: object | null;
}

/** What the machines of a lane are like. Absent: their BMCs are ideal, and their systems run. */
export interface LaneSite {
  readonly profile?: string;
  readonly hasCrashed?: boolean;
  /** Its images are those whose installers read a seed, and somebody serves seeds, whoever dies. */
  readonly isSeeded?: boolean;
}

type Seeds = Awaited<ReturnType<typeof serveSeeds>>;

const PLAN = "plan-of-one-step";

/**
 * Until it is on record that a machine was told to do something, its site stands still: on a computer that stalls, it would else be
 * done in the very look that began it, now and then, and the run would not come by where it is to die.
 */
const STANDS_STILL = 0.1;

/** Runs that the successor works on: all of them at once are more than a simulator on a busy computer answers in time. */
const AT_ONCE = 4;

/** A lane that is opened again finds nothing of the one before: neither its simulator nor what that one kept of its machines. */
let lanes = 0;

/**
 * Runs of one kind of step on a database and a simulated site of their own. Replicas die one after the other, each in the middle
 * of a run on its own machine; what they leave is set aside, and finished by one successor at the end.
 */
export class KillLane {
  readonly database: TestDatabase;
  readonly simulator: SimulatorProcess;
  readonly killed: Killed[] = [];
  readonly #bench: ProcessBench;
  readonly #keyFile: string;
  readonly #seeds: Seeds | undefined;
  readonly #work: StepOnce;
  readonly #machines: string[];
  readonly #site: LaneSite;

  private constructor(
    parts: {
      database: TestDatabase;
      simulator: SimulatorProcess;
      machines: string[];
      keyFile: string;
      seeds: Seeds | undefined;
    },
    bench: ProcessBench,
    work: StepOnce,
    site: LaneSite,
  ) {
    this.#site = site;
    this.database = parts.database;
    this.simulator = parts.simulator;
    this.#machines = parts.machines;
    this.#keyFile = parts.keyFile;
    this.#seeds = parts.seeds;
    this.#bench = bench;
    this.#work = work;
  }

  static async open(bench: ProcessBench, work: StepOnce, site: LaneSite = {}): Promise<KillLane> {
    const name = `${work.kind}-${++lanes}`;
    const simulator = await startSimulatorProcess(bench, {
      name,
      site: site.profile === undefined ? "racks=5" : `racks=5,profile=${site.profile}`,
      seed: 3,
      speed: work.speed,
    });
    const database = await createTestDatabase();
    const keyFile = join(bench.directory, `secret-key-${name}`);
    const secrets = openSecretStore({ keyFile });
    const deps = { db: database.db, stores: allStores, secrets, seedWriter, maxFindByIds: 100 };
    const machines = (await putSiteOnRecord(deps, simulator.call)).map(({ machine_id }) => machine_id);
    const seeds = site.isSeeded ? await serveSeeds(deps) : undefined;
    if (seeds) await database.db.execute("update images set seed = 'nocloud'");
    if (!work.ownPlan) await createPlan(deps, tester, { planId: PLAN, displayName: work.kind, steps: [work.step] });
    return new KillLane({ database, simulator, machines, keyFile, seeds }, bench, work, site);
  }

  /** Carries out one run undisturbed, and returns the places that its replica came through, in their order. */
  async findPlaces(): Promise<Place[]> {
    const { victim } = await this.#start("undisturbed");
    const exit = await victim.exited;
    if (exit.code !== 0) throw new Error(`the run of ${this.#work.kind} came to no end\n${victim.transcript()}`);
    const passed = JSON.parse(victim.stdout()) as string[];
    const places = passed.map((text): Place => {
      const [, position = "", failPoint = ""] = /^(.*) (\S+)$/.exec(text) ?? [];
      return { position: position as Position, failPoint };
    });
    return places.sort((a, b) => POSITIONS.indexOf(a.position) - POSITIONS.indexOf(b.position));
  }

  /** `isCertain`: every run comes by there. Otherwise this one may end without having done so, and nobody is killed. */
  async killAt(place: Place, isCertain: boolean): Promise<void> {
    const { victim, machineId, before } = await this.#start(`${place.position}, ${place.failPoint}`, place);
    const exit = await victim.exited;
    if (exit.code === 0 && !isCertain) return;
    if (exit.signal !== "SIGKILL")
      throw new Error(`it did not die at ${place.failPoint} (${place.position}): ${victim.transcript()}`);
    const { db } = this.database;
    // Set aside, so that the next replica has only its own run. By a lease: an installer that calls meanwhile wakes its run.
    await db.execute("update work set wake_at = 'infinity', lease_until = 'infinity' where kind = 'run'");
    this.killed.push({ place, machineId, before, atDeath: await this.run(machineId) });
  }

  /** As if the time of all leases had passed: another replica finishes what the dead ones left, and their callers ask again. */
  async finishAll(): Promise<void> {
    const { db, url } = this.database;
    const instance = `successor-${this.#work.kind}`;
    const successor = openRunReplica({
      url,
      keyFile: this.#keyFile,
      instance,
      inFlight: AT_ONCE,
      seedsAt: this.#seeds?.httpUrl,
    });
    try {
      await this.#setSpeed(this.#work.speed);
      for (const { machineId } of this.killed)
        await startOnce(successor.deps, { machineId, planId: PLAN, ownPlan: this.#work.ownPlan });
      await db.execute(
        `update work set wake_at = now(), lease_until = case when lease_owner is null then null else now() - interval '1 s' end
          where kind = 'run' and lease_until = 'infinity'`,
      );
      await successor.work();
      const active = "select id, state, facts -> 'steps' as steps from runs where state in ('PENDING', 'RUNNING')";
      await eventually(async () => (await db.query(active)).length === 0, {
        what: "all runs have ended",
        within: 120_000,
        seen: async () => JSON.stringify(await db.query(active), null, 1),
      });
    } finally {
      await successor.stop();
    }
  }

  async run(machineId: string): Promise<RunOnRecord | undefined> {
    const [run] = await this.database.db.query<RunOnRecord>(
      `select id, state, facts -> 'error' as error, coalesce(facts -> 'steps', '[]') as steps from runs where machine_id = $1`,
      [machineId],
    );
    return run;
  }

  truth(machineId: string): Promise<MachineTruth> {
    return this.simulator.call<MachineTruth>("GET", `/devices/${machineId}`);
  }

  async close(): Promise<void> {
    this.simulator.process.signal("SIGTERM");
    await this.simulator.process.exited;
    await this.#seeds?.close();
    await this.database.drop();
  }

  async #setSpeed(speed: number): Promise<void> {
    await this.simulator.call("PUT", "/speed", { speed });
  }

  async #start(instance: string, place?: Place) {
    const machineId = this.#machines.shift();
    if (machineId === undefined) throw new Error("there is no machine left");
    if (this.#work.needsNode)
      await this.simulator.call("POST", `/devices/${machineId}/join`, { cluster: "default-cluster" });
    if (this.#site.hasCrashed) await this.simulator.call("POST", `/devices/${machineId}/crash`);
    await this.#setSpeed(STANDS_STILL);
    const before = await this.truth(machineId);
    const order: VictimOrder = {
      url: this.database.url,
      keyFile: this.#keyFile,
      instance,
      machineId,
      planId: PLAN,
      ownPlan: this.#work.ownPlan,
      seedsAt: this.#seeds?.httpUrl,
      simulator: { controlUrl: this.simulator.controlUrl, speed: this.#work.speed },
      ...(place && { place }),
    };
    const victim = await startProgram(this.#bench, { program: "run-victim.ts", args: [JSON.stringify(order)] });
    return { victim, machineId, before };
  }
}
