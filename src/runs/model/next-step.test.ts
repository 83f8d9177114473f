import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type NextStep, nextInPlan, type Visit } from "./next-step.ts";
import { validatePlan } from "./plan/plan.ts";
import type { StepState } from "./run.ts";

const planOf = (...names: readonly string[]) =>
  validatePlan({ planId: "p", displayName: "", steps: names.map((name) => ({ name, kind: "reboot", payload: {} })) });
const visit = (name: string, state: StepState): Visit => ({
  name,
  state,
  round: 1,
  cause: null,
  verdict: "",
  carriedOver: false,
});
const plan = planOf("a", "b", "c");

describe("what is next in a plan", () => {
  test.each<[string, Visit[], NextStep]>([
    ["the first step of a run that has not begun", [], { type: "run", index: 0 }],
    ["a step that was reached and not begun", [visit("a", "WAITING")], { type: "run", index: 0, visit: 0 }],
    ["the step that a crash interrupted", [visit("a", "RUNNING")], { type: "run", index: 0, visit: 0 }],
    ["the one after a step that succeeded", [visit("a", "SUCCEEDED")], { type: "run", index: 1 }],
    [
      "a step that is to be done again, before what follows those proven after it",
      [visit("a", "WAITING"), visit("b", "SUCCEEDED")],
      { type: "run", index: 0, visit: 0 },
    ],
    [
      "nothing after a step that failed",
      [visit("a", "SUCCEEDED"), visit("b", "FAILED")],
      { type: "failed", index: 1, visit: 1 },
    ],
    [
      "the end after the last",
      [visit("a", "SUCCEEDED"), visit("b", "SUCCEEDED"), visit("c", "SUCCEEDED")],
      { type: "finished" },
    ],
  ])("is %s", (_, visits, next) => {
    expect(nextInPlan(plan, visits)).toEqual(next);
  });

  test.each<[string, Visit[]]>([
    ["a status of a step that the plan does not have there", [visit("b", "SUCCEEDED")]],
    ["a step after one that failed", [visit("a", "FAILED"), visit("b", "RUNNING")]],
    ["two steps at once", [visit("a", "RUNNING"), visit("b", "RUNNING")]],
    [
      "more statuses than steps",
      [visit("a", "SUCCEEDED"), visit("b", "SUCCEEDED"), visit("c", "SUCCEEDED"), visit("a", "RUNNING")],
    ],
  ])("cannot be told from %s", (_, visits) => {
    expect(nextInPlan(plan, visits)).toMatchObject({ type: "misfit", why: expect.stringContaining("a run of p has") });
  });
});

test("a run visits every step once, in order, up to the first failure, however often it is interrupted", () => {
  const outcomes = fc.array(fc.record({ succeeds: fc.boolean(), interruptions: fc.nat(2) }), {
    minLength: 1,
    maxLength: 8,
  });
  fc.assert(
    fc.property(outcomes, (all) => {
      const names = all.map((_, at) => `step-${at}`);
      const long = planOf(...names);
      const visits: Visit[] = [];
      const begun: number[] = [];
      let next = nextInPlan(long, visits);
      for (let guard = 0; next.type === "run"; guard += 1) {
        expect(guard).toBeLessThan(100);
        const { index } = next;
        begun.push(index);
        const outcome = all[index];
        const name = names[index] ?? "";
        const interrupted = begun.filter((each) => each === index).length <= (outcome?.interruptions ?? 0);
        const state = interrupted ? "RUNNING" : outcome?.succeeds ? "SUCCEEDED" : "FAILED";
        visits[next.visit ?? visits.length] = visit(name, state);
        next = nextInPlan(long, visits);
      }
      const failed = all.findIndex(({ succeeds }) => !succeeds);
      const reached = failed === -1 ? names : names.slice(0, failed + 1);
      expect(visits.map(({ name }) => name)).toEqual(reached);
      expect(begun).toEqual(begun.toSorted((a, b) => a - b));
      expect(next).toEqual(failed === -1 ? { type: "finished" } : { type: "failed", index: failed, visit: failed });
    }),
  );
});
