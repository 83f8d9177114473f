import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { seconds } from "../../../src/kernel/time/duration.ts";
import { jobStateOf } from "../../../src/runs/model/job-state.ts";
import { announceNow } from "../../../src/store/lifecycle/journal.ts";
import { eventually } from "../eventually.ts";
import type { ProcessBench } from "../processes/process-bench.ts";
import { startProgram } from "../processes/programs.ts";
import type { RackVictimOrder } from "../processes/rack-victim.ts";
import { enrolDeployed, type OnboardingBench } from "./onboarding-bench.ts";

/** Longer than MAAS gets to show what it may have heard of. */
const SETTLES = seconds(46);

const FAST = 2_000;
const SLOW = 0.01;
const WAITING: ReadonlySet<string> = new Set(["wait_for_ready", "wait_for_deployed"]);

/** Replicas that work on onboardings and die, at each place one, while the rest of a bench does not work itself. */
export class DyingOnboarding {
  readonly #bench: OnboardingBench;
  readonly #processes: ProcessBench;
  readonly #directory: string;
  readonly #failPoints: readonly string[];
  #started = 0;
  #isFast: boolean | undefined;

  constructor(bench: OnboardingBench, processes: ProcessBench, failPoints: readonly string[]) {
    this.#bench = bench;
    this.#processes = processes;
    this.#directory = bench.directory;
    this.#failPoints = failPoints;
    mkdirSync(join(this.#directory, "deaths"), { recursive: true });
    writeFileSync(join(this.#directory, "later"), "0");
  }

  /** Where somebody has died, as `<position> at <fail point>`. */
  deaths(): readonly string[] {
    return readdirSync(join(this.#directory, "deaths")).map(decodeURIComponent).toSorted();
  }

  /** Each that dies is followed by another one, until the job has ended; the agent enrols as soon as its system is deployed. */
  async untilCompleted(nodeId: string): Promise<void> {
    const over = new AbortController();
    const keepers = Promise.all([this.#keepAlive(over.signal), this.#keepAlive(over.signal)]);
    const ended = eventually(() => this.#step(nodeId), {
      ...{ what: "the job ends", within: 240_000 },
      seen: async () => JSON.stringify([await this.#bench.latest(nodeId), this.deaths()], null, 1),
    });
    try {
      await Promise.race([ended, keepers]);
      await ended;
    } finally {
      over.abort();
      await keepers;
    }
  }

  async #step(nodeId: string): Promise<boolean> {
    const bench = this.#bench;
    await bench.hurry();
    const run = await bench.latest(nodeId);
    const last = run.steps.at(-1);
    await this.#setSpeed(last);
    if (last?.name === "wait_for_agent_enrollment" && last.state === "RUNNING") {
      const { enrollment, systemId } = (await bench.node(nodeId)).facts;
      const machine = (await bench.machines()).find(({ system_id }) => system_id === systemId);
      if (enrollment?.consumedAt === null) await enrolDeployed(bench.deps, nodeId, machine?.user_data ?? "");
    }
    const state = jobStateOf(run);
    if (state?.startsWith("failed")) throw new Error(`the job has failed: ${JSON.stringify(run.error)}`);
    return state === "completed";
  }

  /** MAAS is not done before somebody has died over waiting for it, and then at once. A pass that only waits commits nothing. */
  async #setSpeed(last: { readonly name: string; readonly state: string } | undefined): Promise<void> {
    if (!this.#failPoints.includes("controller:handled")) return;
    const isSeen = this.deaths().some((each) => each.startsWith(`fleet_onboarding, ${last?.name} begun at`));
    const isFast = last?.name === "recover_for_datasource_retry" || (WAITING.has(last?.name ?? "") && isSeen);
    if (isFast !== this.#isFast) await this.#bench.maas.control("PUT", "/speed", { speed: isFast ? FAST : SLOW });
    this.#isFast = isFast;
  }

  async #keepAlive(over: AbortSignal): Promise<void> {
    const ended = new Promise<"over">((resolve) => {
      if (over.aborted) resolve("over");
      over.addEventListener("abort", () => resolve("over"), { once: true });
    });
    while (!over.aborted) {
      const instance = `replica-${++this.#started}`;
      const order: RackVictimOrder = {
        ...{ url: this.#bench.databaseUrl, keyFile: this.#bench.keyFile, instance, failPoints: this.#failPoints },
        firmware: { path: join(this.#directory, "firmware"), isFetched: false },
        simulator: { controlUrl: "http://127.0.0.1:9", speed: 1, slow: 1 },
        ...{ deaths: join(this.#directory, "deaths"), later: join(this.#directory, "later") },
        positions: "^fleet_onboarding",
      };
      const replica = await startProgram(this.#processes, { program: "rack-victim.ts", args: [JSON.stringify(order)] });
      if ((await Promise.race([replica.exited, ended])) === "over") replica.signal("SIGTERM");
      const exit = await replica.exited;
      if (exit.signal !== "SIGKILL" && !over.aborted)
        throw new Error(`a replica ended by itself: ${replica.transcript()}`);
      await this.#follow(instance);
    }
  }

  /** As if the leases of the dead one had ended, and as much time had passed as MAAS gets to show what it may have heard of. */
  async #follow(owner: string): Promise<void> {
    const { db } = this.#bench.deps;
    const open = this.deaths().filter((each) => each.includes(" announced at")).length;
    writeFileSync(join(this.#directory, "later"), String(open * SETTLES));
    await db.execute(
      "update work set lease_until = now() - interval '1 s', wake_at = least(wake_at, now()) where lease_owner = $1",
      [owner],
    );
    await announceNow(db);
  }
}
