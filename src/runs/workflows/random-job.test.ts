import fc from "fast-check";
import { expect, test } from "vitest";
import { final } from "../../../test/support/failures.ts";
import { Bench } from "../../../test/support/runs/executor-bench.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { decide } from "../../kernel/decide.ts";
import type { Outcome } from "../../kernel/outcome.ts";
import { residueFacts } from "../../kernel/residue.ts";
import { minutes } from "../../kernel/time/duration.ts";
import { type ChildRun, childStep } from "../children/child-run.ts";
import { defineFanOut } from "../children/fan-out.ts";
import { runLifecycle } from "../model/lifecycle.ts";
import { isActive, type RunPhase } from "../model/run.ts";
import { type AnyStep, collectSteps, defineStep } from "../model/step.ts";
import type { WorkflowAction } from "./actions.ts";
import { inheritStages } from "./next-attempt.ts";
import { defineWorkflow, goTo, planOfWorkflow } from "./workflow.ts";

const PARTS = ["create", "arm", "deploy", "check"] as const;
const GADGETS = ["g0", "g1"];

/** Choices that a test draws beforehand, one after the other; those that are used up begin again. */
class Choices {
  private at = 0;
  private readonly drawn: readonly number[];

  constructor(drawn: readonly number[]) {
    this.drawn = drawn;
  }

  among<T>(of: readonly T[]): T {
    this.at += 1;
    return of[(this.drawn[this.at % this.drawn.length] ?? 0) % of.length] as T;
  }
}

/** A world of parts. Each is there from when its stage acted until its undo is over. */
class World {
  readonly there = new Set<string>();
  /** Parts whose undo the device has refused: nobody asks for that again. */
  readonly refused = new Set<string>();
  private readonly choices: Choices;
  private made = 0;
  /** The part whose undo a device carries out, and how often it is asked before that is over. */
  private readonly undoing = new Map<string, number>();

  constructor(choices: Choices) {
    this.choices = choices;
  }

  readonly steps = PARTS.map((kind) =>
    defineStep({
      kind,
      needs: [],
      parse: (payload) => payload,
      before: async () => ({ part: `${kind}-${this.made}` }),
      act: async ({ evidence }) => {
        const how = this.choices.among(["does", "does", "does", "fails", "fails halfway"]);
        if (how === "fails") throw final(`${kind} is not possible`);
        this.made += 1;
        this.there.add(String(evidence.part));
        if (how === "fails halfway") throw final(`${kind} broke down`);
        return { receipt: {} };
      },
      probe: async ({ receipt }) => (receipt === null ? "not_done" : "done"),
      undo: async ({ evidence }) => this.unmake(String(evidence.part)),
      ...(kind === "arm" && { forNextBoot: true as const }),
    }),
  );

  private unmake(part: string) {
    const asked = this.undoing.get(part);
    const how =
      asked === undefined ? this.choices.among(["at once", "at once", "goes on", "no answer", "refused"]) : "goes on";
    if (how === "no answer") throw new DeviceFailure("unreachable", "bmc", "nobody answers");
    if (how === "refused") {
      this.refused.add(part);
      throw final("the device refuses");
    }
    if (how === "goes on" && this.there.has(part)) {
      const left = asked ?? this.choices.among([1, 3, 40]);
      this.undoing.set(part, left - 1);
      if (left > 0) return { goesOn: "is being released" };
    }
    this.undoing.delete(part);
    this.there.delete(part);
    return undefined;
  }
}

const pokeAll = defineFanOut({
  kind: "poke_all",
  parse: (payload) => payload,
  defaults: { timeout: minutes(1) },
  targets: () => GADGETS.map((id) => ({ kind: "gadget", id })),
  stepsOn: () => [
    childStep(
      { kind: "poke", defaults: { timeout: minutes(1), maxRetries: 0 }, parse: (payload: object) => ({ ...payload }) },
      {},
    ),
  ],
  atOnce: 2,
  stopsAtFailure: true,
});

/** Goes back after a failed fan-out, as long as it may. */
const building = defineWorkflow({
  kind: "building",
  doc: "",
  stages: [
    { name: "create", compensation: "undo", isSafe: true, maxRetries: 0, maxRounds: 3 },
    { name: "arm", compensation: "undo", maxRetries: 0, maxRounds: 3 },
    { name: "poke_all", compensation: "nothing", maxRounds: 3, leadsTo: ["create", "poke_all", "deploy"] },
    { name: "deploy", compensation: "undo", maxRetries: 0, maxRounds: 3, timeout: minutes(1) },
    { name: "check", compensation: "undo", maxRetries: 1, maxRounds: 3 },
  ],
  next(history, { onwards }) {
    const last = history.at(-1);
    const failed = history.filter(
      ({ stage, state, carriedOver }) => stage === "poke_all" && state === "FAILED" && !carriedOver,
    );
    if (last?.stage !== "poke_all" || last.state !== "FAILED" || failed.length > 2) return onwards;
    return goTo(failed.length === 1 ? "poke_all" : "create");
  },
});

const WORKFLOWS = new Map([["building", building]]);

/** A job, driven as the engine drives it: its runs, the runs that they start, crashes, and people who act at any moment. */
class Job {
  readonly bench = new Bench();
  readonly world: World;
  /** The stages of which something was ever listed. */
  readonly everListed = new Set<string>();
  phase: RunPhase = "PENDING";
  private readonly choices: Choices;
  private attempts = 1;
  private isDowngraded: boolean;

  constructor(choices: Choices) {
    this.choices = choices;
    this.world = new World(choices);
    this.bench.kinds = [...this.world.steps, pokeAll];
    this.isDowngraded = this.choices.among([false, false, true]);
    this.bench.plan = planOfWorkflow(building, collectSteps(this.bench.kinds) as ReadonlyMap<string, AnyStep>);
  }

  /** Until the run has ended. */
  async carryOut(cancelAt: number): Promise<void> {
    for (let passes = 0; isActive(this.phase); passes += 1) {
      expect(passes, "an end").toBeLessThan(600);
      if (passes === cancelAt && this.bench.cancelRequestedAt === null) this.bench.cancelRequestedAt = this.bench.now;
      if (this.phase === "PENDING") this.begin();
      else await this.pass();
    }
  }

  private begin(): void {
    const decision = decide(runLifecycle, { ...this.bench.run(), state: { name: "PENDING" } });
    this.phase = decision.kind === "move" ? (decision.move.to as RunPhase) : "RUNNING";
    this.bench.startedAt = this.bench.now;
  }

  /** While replicas are replaced, a pass may be made by one that lacks the workflow; during a cancel all of them may. */
  private hasWorkflow(): boolean {
    if (this.bench.cancelRequestedAt !== null && this.isDowngraded) return false;
    return this.choices.among([true, true, true, true, true, false]);
  }

  private async pass(): Promise<void> {
    this.endSomeChild();
    this.bench.workflows = this.hasWorkflow() ? WORKFLOWS : new Map();
    if (this.choices.among([false, false, false, false, false, false, true])) return this.bench.lookAndDie();
    const outcome = await this.bench.pass();
    this.commit(outcome);
    for (const line of this.bench.residue) this.everListed.add(stageOf(line, ":"));
    if (outcome.type === "waiting") this.bench.now = new Date(this.bench.now.getTime() + outcome.after);
    if (outcome.type === "happened" && outcome.event !== "acting")
      this.phase = ({ finished: "SUCCEEDED", canceled: "CANCELED", step_failed: "FAILED" } as const)[
        outcome.event as "finished"
      ];
  }

  private commit(outcome: Outcome): void {
    for (const effect of outcome.effects ?? []) {
      if (effect.type === "order")
        this.bench.children = this.bench.children.map((one) =>
          one.id === effect.id ? { ...one, isCanceling: true } : one,
        );
      if (effect.type !== "create" || this.bench.children.some(({ id }) => id === effect.id)) continue;
      const { target_id: id, parent_round: round } = effect.row;
      const target = { kind: "gadget", id: String(id) };
      const isBusy = this.bench.children.some((one) => one.target.id === target.id && isActive(one.phase));
      expect(isBusy, `two runs at once on ${target.id}`).toBe(false);
      const child = {
        id: effect.id,
        step: "poke_all",
        round: Number(round),
        target,
        message: "",
        isCanceling: false,
        cause: null,
        isUnproven: false,
        left: [],
      };
      this.bench.children = [...this.bench.children, { ...child, phase: "RUNNING" }];
    }
  }

  private endSomeChild(): void {
    const become = (child: ChildRun): ChildRun => {
      if (!isActive(child.phase)) return child;
      const phase = this.choices.among<RunPhase>(["RUNNING", "RUNNING", "SUCCEEDED", "SUCCEEDED", "FAILED"]);
      return { ...child, phase: child.isCanceling && phase !== "RUNNING" ? "CANCELED" : phase };
    };
    this.bench.children = this.bench.children.map(become);
  }

  act(action: WorkflowAction): void {
    const { bench } = this;
    const { facts, plan, params } = bench.run();
    const { residue, ...inherited } = inheritStages({ ...facts, plan, params }, action, building);
    this.attempts += 1;
    this.isDowngraded = this.choices.among([false, false, true]);
    const anew = { startedAt: bench.now, logged: [], manual: null, undoingSince: null, children: [] };
    Object.assign(bench, { id: `run-${this.attempts}`, action, ...inherited, ...residueFacts(residue), ...anew });
    bench.cancelRequestedAt = action === "cancel" ? bench.now : null;
    this.phase = "PENDING";
  }
}

const ACTIONS = ["retry", "resume", "rerun", "restart_clean", "restart_clean", "cancel"] as const;

test("whatever fails, and whenever people cancel: what a canceled job made is undone or listed", async () => {
  const draws = fc.array(fc.nat(999), { minLength: 40, maxLength: 120 });
  const asked = fc.array(fc.record({ action: fc.constantFrom(...ACTIONS), cancelAt: fc.nat(30) }), {
    minLength: 1,
    maxLength: 5,
  });
  await fc.assert(
    fc.asyncProperty(draws, fc.integer({ min: 0, max: 60 }), asked, async (drawn, cancelAt, acts) => {
      const job = new Job(new Choices(drawn));
      await job.carryOut(cancelAt);
      for (const { action, cancelAt: at } of acts) {
        if (job.phase === "CANCELED") checkCanceled(job);
        if (job.phase !== "FAILED" && !(job.phase === "CANCELED" && (action === "rerun" || action === "restart_clean")))
          break;
        job.act(action);
        await job.carryOut(at);
      }
      if (job.phase === "FAILED") {
        job.act("cancel");
        await job.carryOut(0);
      }
      if (job.phase === "CANCELED") checkCanceled(job);
    }),
    { numRuns: 600 },
  );
});

const stageOf = (word: string, before: string): string =>
  word.slice(0, word.indexOf(before)).replace(/ \(round \d+\)$/, "");

/** A line names the stage, and not which of its parts: what was refused goes from the list when a later part of the stage is undone. */
function checkCanceled({ bench, world, everListed }: Job): void {
  const listed = [...bench.residue, ...bench.machineResidue].map((line) => stageOf(line, ":"));
  const forgotten = [...world.there].filter((part) => {
    const stage = stageOf(part, "-");
    return !(world.refused.has(part) ? everListed.has(stage) : listed.includes(stage));
  });
  expect(forgotten, "made, and neither undone nor listed").toEqual([]);
}
