import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as visits from "../executor/step/visit.ts";
import { ACTION_RULES, type Inheritance, inheritFrom, mayFollowPhase, type NextAttempt } from "./next-attempt.ts";
import { nextInPlan } from "./next-step.ts";
import type { Plan } from "./plan/plan.ts";
import { RUN_PHASES, type StepStatus } from "./run.ts";

const now = new Date("2026-01-01T00:00:00Z");
const plan: Plan = {
  planId: "plan/test",
  displayName: "",
  steps: ["one", "two", "three"].map((name) => ({
    name,
    kind: "poke",
    timeoutSeconds: 60,
    maxRetries: 0,
    payload: {},
  })),
};
const ACTIONS = Object.keys(ACTION_RULES) as NextAttempt[];
const visit = (name: string, change: Partial<StepStatus> = {}): StepStatus => ({
  ...visits.beginVisit({ ...plan.steps[0], name } as Plan["steps"][number], now),
  ...change,
});
const proven = visit("one", { state: "SUCCEEDED", finishedAt: now, evidence: { seen: 1 } });
const failed = visit("two", {
  state: "FAILED",
  finishedAt: now,
  retryCount: 3,
  message: "no answer",
  evidence: { seen: 2 },
  actingBy: "another",
  actingAt: now,
  actedAt: new Date(now.getTime() + 5_000),
  toTakeBack: { seen: 2 },
  needsPerson: true,
});

/** An attempt that has taken back all that there was to take back before it began. */
const ended = (steps: readonly StepStatus[]): Inheritance => ({ steps, takeBackFirst: null });

describe("what an attempt has of the one before", () => {
  test("retry keeps what was proven, and begins the failed step with evidence of its own", () => {
    const { steps, takeBackFirst } = inheritFrom(ended([proven, failed]), "retry");
    expect(steps).toEqual([{ ...proven, carriedOver: true }]);
    expect(takeBackFirst).toEqual({ step: "two", evidence: { seen: 2 } });
  });

  test("retry has nothing to undo where the failed attempt undid it itself", () => {
    expect(inheritFrom(ended([proven, { ...failed, toTakeBack: null }]), "retry").takeBackFirst).toBeNull();
  });

  test("resume goes on by what was noted, as a visit of its own that has not failed", () => {
    const { steps, takeBackFirst } = inheritFrom(ended([proven, failed]), "resume");
    expect(takeBackFirst).toBeNull();
    expect(steps).toMatchObject([
      { name: "one", carriedOver: true },
      {
        name: "two",
        state: "WAITING",
        resumed: true,
        carriedOver: false,
        retryCount: 0,
        message: "",
        evidence: { seen: 2 },
        actingBy: null,
        actingAt: failed.actedAt,
        actedAt: null,
        needsPerson: false,
      },
    ]);
  });

  test("resume undoes first what the last attempt left, when it was to begin again", () => {
    const between = { ...failed, evidence: null, toTakeBack: { seen: 2 } };
    expect(inheritFrom(ended([proven, between]), "resume")).toMatchObject({
      steps: [{ name: proven.name }],
      takeBackFirst: { step: "two", evidence: { seen: 2 } },
    });
    // Left alone by an adoption, and passed on by it.
    expect(inheritFrom(ended([proven, between]), "adopt").takeBackFirst).toEqual({
      step: "two",
      evidence: { seen: 2 },
    });
  });

  test("adopt looks by the same evidence, and has nothing to undo", () => {
    const { steps } = inheritFrom(ended([proven, failed]), "adopt");
    expect(steps.at(-1)).toMatchObject({ name: "two", resumed: true, evidence: { seen: 2 }, toTakeBack: null });
  });

  test("rerun undoes first what was left open, and has nothing else of it", () => {
    const takeBackFirst = { step: "two", evidence: { seen: 2 } };
    expect(inheritFrom(ended([proven, failed]), "rerun")).toEqual({ steps: [], takeBackFirst });
    const settled = { ...failed, toTakeBack: null };
    expect(inheritFrom(ended([proven, settled]), "rerun")).toEqual({ steps: [], takeBackFirst: null });
    expect(inheritFrom(ended([proven]), "rerun")).toEqual({ steps: [], takeBackFirst: null });
  });

  test("is also what proven steps had set for the next boot, and could not be undone", () => {
    const armed = { ...proven, takenBack: true, toTakeBack: { seen: 1 } };
    const [one, two] = [1, 2].map((seen) => ({ step: seen === 1 ? "one" : "two", evidence: { seen } }));
    const inheritedBy = (action: NextAttempt) => inheritFrom(ended([armed, failed]), action);
    expect(ACTIONS.map((action) => [action, inheritedBy(action).takeBackFirst])).toEqual([
      ["retry", { ...two, more: [one] }],
      ["resume", one], // which asks the step that was under way how far it is
      ["rerun", { ...two, more: [one] }],
      ["restart_clean", { ...two, more: [one] }],
      ["adopt", { ...two, more: [one] }],
    ]);
    for (const action of ["retry", "resume", "adopt"] as const)
      expect(inheritedBy(action).steps[0]).toMatchObject({ carriedOver: true, takenBack: true, toTakeBack: null });
  });

  test("restart clean undoes what was begun, also when the attempt before tried to", () => {
    const takeBackFirst = { step: "two", evidence: { seen: 2 } };
    expect(inheritFrom(ended([proven, failed]), "restart_clean")).toEqual({ steps: [], takeBackFirst });
    expect(inheritFrom(ended([proven, { ...failed, toTakeBack: null }]), "restart_clean")).toEqual({
      steps: [],
      takeBackFirst,
    });
    const neverActed = { ...failed, toTakeBack: null, actingAt: null, actedAt: null };
    expect(inheritFrom(ended([neverActed]), "restart_clean").takeBackFirst).toBeNull();
  });

  test("is also what that one was to undo first, and ended before it had", () => {
    const takeBackFirst = { step: "two", evidence: { seen: 2 } };
    const canceledWhilePending = { ...inheritFrom(ended([proven, failed]), "retry") };
    expect(canceledWhilePending.takeBackFirst).toEqual(takeBackFirst);
    const after = (action: NextAttempt) => inheritFrom(canceledWhilePending, action).takeBackFirst;
    expect(ACTIONS.map((action) => [action, after(action)])).toEqual([
      ["retry", takeBackFirst],
      ["resume", takeBackFirst],
      ["rerun", takeBackFirst],
      ["restart_clean", takeBackFirst],
      ["adopt", takeBackFirst],
    ]);
  });

  test("is both what that one was to undo and what it knows of its own steps, and nothing twice", () => {
    const armed = { ...proven, takenBack: true, toTakeBack: { seen: 1 } };
    const [one, two] = [1, 2].map((seen) => ({ step: seen === 1 ? "one" : "two", evidence: { seen } }));
    // It ended before it had cleared the boot source, and so before it asked for the step.
    const resumed = inheritFrom(ended([armed, failed]), "resume");
    const left = (action: NextAttempt) => inheritFrom(resumed, action).takeBackFirst;
    expect(ACTIONS.map((action) => [action, left(action)])).toEqual([
      ["retry", { ...one, more: [two] }],
      ["resume", one],
      ["rerun", { ...one, more: [two] }],
      ["restart_clean", { ...one, more: [two] }],
      ["adopt", { ...one, more: [two] }],
    ]);
    expect(inheritFrom({ steps: [armed], takeBackFirst: { step: "one", evidence: { seen: 1 } } }, "rerun")).toEqual({
      steps: [],
      takeBackFirst: one,
    });
  });

  test("is always something that the plan can go on from, in its order, and never ended", () => {
    const state = fc.constantFrom<StepStatus["state"]>("SUCCEEDED", "SUCCEEDED", "FAILED", "RUNNING", "WAITING");
    const past = fc
      .array(fc.record({ state, evidence: fc.boolean(), begun: fc.boolean() }), { maxLength: plan.steps.length })
      .map((all) =>
        all.map(({ state, evidence, begun }, at) => {
          const seen = evidence ? { seen: at } : null;
          return visit(plan.steps[at]?.name ?? "", { state, evidence: seen, toTakeBack: begun ? seen : null });
        }),
      );
    const isProven = (step: StepStatus) => step.state === "SUCCEEDED";
    const namesOf = (steps: readonly { readonly name: string }[]) => steps.map(({ name }) => name);
    fc.assert(
      fc.property(past, fc.constantFrom(...ACTIONS), (steps, action) => {
        const inherited = inheritFrom(ended(steps), action);
        const next = nextInPlan(plan, inherited.steps);
        const known = ACTION_RULES[action].carriesProven ? steps : [];
        if (known.length === 0) expect(inherited.steps).toEqual([]);
        expect(namesOf(inherited.steps)).toEqual(namesOf(plan.steps).slice(0, inherited.steps.length));
        expect(namesOf(inherited.steps.filter(isProven))).toEqual(namesOf(known.filter(isProven)));
        expect(inherited.steps.filter(({ carriedOver }) => carriedOver)).toEqual(inherited.steps.filter(isProven));
        const open = known.findIndex((step) => !isProven(step));
        const index = open === -1 ? known.length : open;
        expect(next).toMatchObject(index === plan.steps.length ? { type: "finished" } : { type: "run", index });
      }),
    );
  });
});

test("which action follows which phase", () => {
  const possible = Object.fromEntries(
    RUN_PHASES.map((phase) => [phase, ACTIONS.filter((action) => mayFollowPhase(action, phase))]),
  );
  expect(possible).toEqual({
    PENDING: [],
    RUNNING: [],
    SUCCEEDED: ["rerun"],
    FAILED: ["retry", "resume", "rerun", "restart_clean", "adopt"],
    CANCELED: ["resume", "rerun", "restart_clean", "adopt"],
  });
});
