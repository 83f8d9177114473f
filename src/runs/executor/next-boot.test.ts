import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { final, retryable } from "../../../test/support/failures.ts";
import { Bench, nextAttempt, revive } from "../../../test/support/runs/executor-bench.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { ACTION_RULES, mayFollowPhase, type NextAttempt } from "../model/next-attempt.ts";
import { defineStep, type ProbeAnswer } from "../model/step.ts";

describe("what a proven step has set for the next boot", () => {
  /** Two steps for the next boot, of which the second fails for good. */
  async function failingLater(prepare: (bench: Bench) => void = () => undefined): Promise<Bench> {
    const bench = new Bench();
    bench.planned = ["first", "second"];
    bench.maxRetries = 0;
    Object.assign(bench.device.step, { forNextBoot: true });
    prepare(bench);
    const { before } = bench.device.step;
    let begun = 0;
    bench.device.step.before = async (context) => {
      begun += 1;
      if (begun > 1) throw final("refused");
      return before(context);
    };
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed" });
    return bench;
  }

  test("is undone when a later step fails, and set again before the attempt after it acts", async () => {
    const bench = await failingLater();
    expect(bench.device).toMatchObject({ acts: 1, undone: 1 });
    expect(bench.steps).toMatchObject([{ name: "first", state: "SUCCEEDED", takenBack: true }, { state: "FAILED" }]);
    const again = nextAttempt(bench, "retry");
    again.device.acts = 0; // taken back, it shows nothing of it
    again.device.step.before = async () => ({ seen: 0 });
    expect(await again.untilEnd()).toMatchObject({ event: "finished" });
    expect(again.logged.join("")).toContain("first was undone meanwhile, and is done again first");
    expect(again.device.acts).toBe(1);
    expect(again.steps).toMatchObject([
      { name: "first", state: "SUCCEEDED", takenBack: false, carriedOver: false },
      { name: "second", state: "SUCCEEDED" },
    ]);
  });

  test("is set again also for a step that a resume had gone on with, and the run goes on after it", async () => {
    const bench = await failingLater();
    // As after a cancel right after its action was announced, of which the device never heard.
    const second = { state: "FAILED", evidence: { seen: 0 }, actingAt: bench.now } as const;
    bench.steps = bench.steps.map((step) => (step.name === "second" ? { ...step, ...second } : step));
    const again = nextAttempt(bench, "resume");
    again.device.acts = 0; // taken back, it shows nothing of it
    again.device.step.before = async () => ({ seen: 0 });
    expect(await again.untilEnd()).toMatchObject({ event: "finished" });
    expect(again.logged.join("")).toContain("first was undone meanwhile, and is done again first");
    expect(again.steps).toMatchObject([
      { name: "first", state: "SUCCEEDED", takenBack: false },
      { name: "second", state: "SUCCEEDED" },
    ]);
  });

  test("and is being set again when the run is canceled, is not under way any more", async () => {
    const bench = await failingLater();
    const second = { state: "FAILED", evidence: { seen: 0 }, actingAt: bench.now } as const;
    bench.steps = bench.steps.map((step) => (step.name === "second" ? { ...step, ...second } : step));
    const again = nextAttempt(bench, "resume");
    again.device.acts = 0;
    while (again.steps[0]?.state === "SUCCEEDED") {
      const looked = await again.pass();
      if (looked.type === "waiting") again.now = new Date(again.now.getTime() + looked.after);
    }
    again.cancelRequestedAt = again.now;
    expect(await again.pass()).toMatchObject({ event: "canceled" });
    expect(again.steps.map(({ state }) => state)).toEqual(["FAILED", "FAILED"]);
  });

  test.each(["retry", "rerun", "restart_clean"] as const)(
    "and could not be taken back at the end, is so first by a %s, and then set by it",
    async (action) => {
      const bench = await failingLater(({ device }) => {
        device.failUndoing = retryable("the BMC is dead");
      });
      expect(bench.residue).toEqual([expect.stringMatching(/^first: .*the BMC is dead/)]);
      expect(bench.logged.at(-1)).toBe(`stays behind: ${bench.residue[0]}\n`);
      nextAttempt(bench, action);
      bench.device.step.before = async () => ({ seen: 0 });
      expect(await bench.pass()).toMatchObject({
        reason: expect.stringMatching(/^what step first .*is not undone/),
      });
      bench.device.failUndoing = undefined;
      expect(await bench.pass()).toMatchObject({ reason: "first: undone", facts: { takeBackFirst: null } });
      expect(bench.device).toMatchObject({ acts: 1, undone: 1 }); // all before it
      bench.device.acts = 0; // taken back, it shows nothing of it
      expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
      // By its own doing, and not found so: whoever fails after it takes it back again.
      expect(bench.steps).toMatchObject([{ name: "first", takenBack: false, carriedOver: false }, { name: "second" }]);
      expect(bench.steps[0]?.actingAt).not.toBeNull();
    },
  );

  test("stays undone where people have restarted the machine meanwhile", async () => {
    const bench = new Bench();
    bench.planned = ["arm", "boot", "last"];
    bench.action = "resume";
    const visit = {
      ...revive({ retryCount: 0, toTakeBack: null }),
      evidence: { seen: 0 },
      state: "SUCCEEDED",
    } as const;
    bench.steps = [
      { ...visit, name: "arm", kind: "arm", carriedOver: true, takenBack: true, actingAt: bench.now },
      { ...visit, name: "boot", kind: "boot", state: "WAITING", resumed: true },
    ];
    const { step } = bench.device;
    bench.kinds = [
      Object.assign({}, step, {
        kind: "arm",
        forNextBoot: true,
        probe: () => Promise.reject(new Error("asked again")),
      }),
      Object.assign({}, step, { kind: "boot", reboots: true, probe: async () => "done" }),
      step,
    ];
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.steps).toMatchObject([
      { name: "arm", takenBack: true },
      { name: "boot", state: "SUCCEEDED" },
      { name: "last", state: "SUCCEEDED" },
    ]);
    expect(bench.device.acts).toBe(1);
  });

  test("is left alone where it was found so: then somebody else has set it", async () => {
    const bench = await failingLater(({ device }) => {
      device.answers = ["done"];
    });
    expect(bench.device.undone).toBe(0);
    expect(bench.steps).toMatchObject([{ state: "SUCCEEDED", takenBack: false }, { state: "FAILED" }]);
  });
});

/** Arms the next boot, does something else, boots: a plan whose first step is taken back, and set again, under the second. */
class BootBench extends Bench {
  isArmed = false;
  isPrepared = false;
  boots = 0;
  /** Booted from where it was not to. */
  hasGoneAstray = false;
  failing: "arm" | "prepare" | "boot" | null = null;
  /** The command for the next boot is obeyed, and then nobody answers any more. */
  goesAway = false;
  isAway = false;
  attempts = 1;

  constructor() {
    super();
    this.planned = ["arm", "prepare", "boot"];
    this.maxRetries = 0;
    const answer = (isDone: boolean): ProbeAnswer => (isDone ? "done" : "not_done");
    this.kinds = [
      defineStep({
        ...this.#common("arm"),
        forNextBoot: true,
        act: async () => {
          this.#check("arm");
          this.isArmed = true;
          this.isAway = this.goesAway;
          this.#check("arm");
        },
        probe: async () => answer(this.#reached(this.isArmed)),
        undo: async () => {
          this.isArmed = this.#reached(false);
        },
        residue: () => "may boot from elsewhere",
      }),
      defineStep({
        ...this.#common("prepare"),
        act: async () => {
          this.#check("prepare");
          this.isPrepared = true;
        },
        probe: async () => answer(this.isPrepared),
      }),
      defineStep({
        ...this.#common("boot"),
        reboots: true,
        act: async () => {
          this.#check("boot");
          this.hasGoneAstray ||= !this.isArmed;
          this.boots += 1;
          this.isArmed = false;
        },
        probe: async ({ evidence }) => answer(this.#reached(this.boots > evidence.boots)),
      }),
    ];
  }

  #common<K extends string>(kind: K) {
    return {
      kind,
      needs: [],
      parse: (payload: JsonObject) => payload,
      before: async () => ({ boots: this.boots }),
    } as const;
  }

  #reached<T>(value: T): T {
    if (this.isAway) throw new DeviceFailure("unreachable", "bmc", "the BMC is away");
    return value;
  }

  #check(kind: string): void {
    this.#reached(null);
    if (this.failing === kind) throw final(`${kind} is refused`);
  }

  follow(action: NextAttempt): this {
    nextAttempt(this, action);
    this.attempts += 1;
    return Object.assign(this, { id: `run-${this.attempts}`, failing: null, goesAway: false, isAway: false });
  }

  get statuses(): string[] {
    return this.steps.map(({ name, state }) => `${name} ${state}`);
  }
}

describe("a step that was to be done again under others that are proven, and was not", () => {
  /** The boot failed, so the arming was taken back; the retry after it could not do that again. */
  async function notArmedAgain(): Promise<BootBench> {
    const bench = new BootBench();
    bench.failing = "boot";
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed" });
    bench.follow("retry").failing = "arm";
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed", message: "arm: arm is refused" });
    expect(bench.statuses).toEqual(["arm FAILED", "prepare SUCCEEDED"]);
    return bench;
  }

  test.each(["retry", "resume"] as const)(
    "is done in its place by a %s, and the others are not done again",
    async (action) => {
      const bench = (await notArmedAgain()).follow(action);
      expect(await bench.untilEnd(60)).toMatchObject({ event: "finished" });
      expect(bench.steps).toMatchObject([
        { name: "arm", state: "SUCCEEDED", carriedOver: false },
        { name: "prepare", state: "SUCCEEDED", carriedOver: true },
        { name: "boot", state: "SUCCEEDED" },
      ]);
      expect(bench).toMatchObject({ boots: 1, hasGoneAstray: false });
    },
  );

  test("is looked for in its place by an adoption", async () => {
    const bench = (await notArmedAgain()).follow("adopt");
    bench.isArmed = true; // by people
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed", message: /^boot: cannot be taken as done/ });
    expect(bench.statuses).toEqual(["arm SUCCEEDED", "prepare SUCCEEDED", "boot FAILED"]);
  });

  test("is done in its place when a cancel came over it", async () => {
    const bench = new BootBench();
    bench.failing = "boot";
    await bench.untilEnd();
    bench.follow("retry");
    while (bench.statuses[0] !== "arm RUNNING") await bench.pass();
    bench.cancelRequestedAt = bench.now;
    expect(await bench.pass()).toMatchObject({ event: "canceled" });
    expect(await bench.follow("resume").untilEnd(60)).toMatchObject({ event: "finished" });
    expect(bench).toMatchObject({ boots: 1, hasGoneAstray: false });
  });
});

test("an adoption that fails keeps, and leaves listed, what is still set for the next boot", async () => {
  const bench = new BootBench();
  bench.goesAway = true;
  expect(await bench.untilEnd(60)).toMatchObject({ event: "step_failed" });
  const listed = [expect.stringMatching(/^arm: may boot from elsewhere \(undoing it failed: the BMC is away\)$/)];
  expect(bench).toMatchObject({ isArmed: true, machineResidue: listed });
  bench.isPrepared = true;
  expect(await bench.follow("adopt").untilEnd()).toMatchObject({ event: "step_failed" });
  expect(bench.statuses).toEqual(["arm SUCCEEDED", "prepare SUCCEEDED", "boot FAILED"]);
  expect(bench).toMatchObject({ isArmed: true, machineResidue: listed, takeBackFirst: { step: "arm" } });
  // Which takes it back first, as it does with all that was left, and so has to set it again.
  expect(await bench.follow("retry").untilEnd()).toMatchObject({ event: "finished" });
  expect(bench).toMatchObject({ boots: 1, hasGoneAstray: false, machineResidue: [] });
});

test("whatever attempts follow each other, each goes on in the plan's order, comes to an end, and tells what is still armed", async () => {
  // What goes on with the proven steps, and what fails late, is where attempts depend on each other.
  const carryingOn = Object.keys(ACTION_RULES).filter((one) => ACTION_RULES[one as NextAttempt].carriesProven);
  const rarely = fc.constantFrom(false, false, false, true);
  const attempt = fc.record({
    action: fc.constantFrom(...([...Object.keys(ACTION_RULES), ...carryingOn] as NextAttempt[])),
    failing: fc.constantFrom("arm", "arm", "prepare", "boot", "boot", null),
    goesAway: rarely,
    isAway: rarely,
    cancelAfter: fc.option(fc.nat(12), { freq: 2 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(attempt, { minLength: 2, maxLength: 6 }), async (attempts) => {
      const bench = new BootBench();
      let phase: "FAILED" | "CANCELED" | "SUCCEEDED" | null = null;
      for (const { action, cancelAfter, ...faults } of attempts) {
        if (phase !== null && !mayFollowPhase(action, phase)) continue;
        if (phase !== null) bench.follow(action);
        Object.assign(bench, faults);
        let looks = 0;
        for (phase = null; phase === null; looks += 1) {
          expect(looks).toBeLessThan(200);
          if (looks === cancelAfter) bench.cancelRequestedAt = bench.now;
          const outcome = await bench.pass();
          expect(outcome).not.toMatchObject({ facts: { error: { code: "PANIC" } } });
          expect(bench.steps.map(({ name }) => name)).toEqual(bench.planned.slice(0, bench.steps.length));
          if (outcome.type === "waiting") bench.now = new Date(bench.now.getTime() + outcome.after);
          if (outcome.type !== "happened" || outcome.event === "acting") continue;
          phase =
            ({ finished: "SUCCEEDED", step_failed: "FAILED", canceled: "CANCELED" } as const)[outcome.event] ?? null;
        }
        expect(bench.hasGoneAstray).toBe(false);
        // Who could not ask, or was only to look, lists what may be.
        if (bench.isArmed || !(bench.isAway || bench.action === "adopt"))
          expect(bench.machineResidue.some((line) => line.startsWith("arm: "))).toBe(bench.isArmed);
        if (phase === "SUCCEEDED") bench.isPrepared = false;
      }
    }),
    { numRuns: 300 },
  );
});
