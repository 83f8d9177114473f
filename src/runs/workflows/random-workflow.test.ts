import fc from "fast-check";
import { expect, test } from "vitest";
import * as visits from "../executor/step/visit.ts";
import type { Plan } from "../model/plan/plan.ts";
import type { StepStatus } from "../model/run.ts";
import { type EndedAttempt, inheritStages } from "./next-attempt.ts";
import { nextInWorkflow } from "./next-stage.ts";
import {
  type Choice,
  defineWorkflow,
  mayEndAfter,
  planOfWorkflow,
  roundsOf,
  type Workflow,
  waysFrom,
} from "./workflow.ts";

const NOW = new Date("2026-01-01T00:00:00Z");
const BACK_ROUNDS = 4;

/** As many visits a run may make at most. */
const mostVisits = ({ stages }: Workflow): number => stages.reduce((sum, stage) => sum + roundsOf(stage), 0);

/** Any workflow that loads: some edges lead back, and what is chosen depends on nothing but the history. */
const anyWorkflow: fc.Arbitrary<Workflow> = fc
  .record({
    edges: fc.array(fc.array(fc.nat(7), { maxLength: 4 }), { minLength: 1, maxLength: 8 }),
    safe: fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
    choices: fc.array(fc.nat(99), { minLength: 1, maxLength: 20 }),
    rounds: fc.integer({ min: 1, max: BACK_ROUNDS }),
  })
  .map(({ edges, safe, choices, rounds }) => {
    const names = edges.map((_, at) => `stage-${at}`);
    const workflow: Workflow = defineWorkflow({
      kind: "any",
      doc: "",
      stages: edges.map((ways, at) => ({
        name: names[at] as string,
        compensation: "nothing",
        maxRounds: rounds,
        mayEnd: true,
        ...(safe[at] && { isSafe: true as const }),
        leadsTo: [...new Set([at + 1, ...ways].flatMap((to) => names[to] ?? []))],
      })),
      next(history): Choice {
        const last = history.at(-1);
        const ways = last === undefined ? names.slice(0, 1) : waysFrom(workflow, last.stage);
        const seed =
          (choices[history.length % choices.length] ?? 0) + history.filter(({ state }) => state === "FAILED").length;
        const stage = ways[seed % Math.max(1, ways.length)];
        if (last !== undefined && (stage === undefined || seed % 11 === 0))
          return mayEndAfter(workflow, last.stage) && last.state !== "FAILED"
            ? { type: "finish" }
            : { type: "give_up" };
        if (stage === undefined) return { type: "give_up" };
        return seed % 5 === 0 ? { type: "skip", stage, why: "not needed" } : { type: "go", stage };
      },
    });
    return workflow;
  });

/** One run, up to its end: how it ended, and whatever was visited. */
function carryOut(workflow: Workflow, plan: Plan, inherited: readonly StepStatus[], outcomes: readonly boolean[]) {
  const steps = [...inherited];
  const most = mostVisits(workflow) + inherited.length;
  for (let made = 0; ; made += 1) {
    expect(made, "an end within its bounds").toBeLessThanOrEqual(most);
    const next = nextInWorkflow(workflow, { plan, visits: steps, params: {} });
    expect(next.type, JSON.stringify(next)).not.toBe("misfit");
    if (next.type !== "run" && next.type !== "skip") return { end: next.type, steps };
    const step = plan.steps[next.index];
    if (!step) throw new Error("there is no such step");
    const begun = next.type === "run" ? visits.beginVisit(step, NOW, next.round ?? 1) : undefined;
    const after =
      next.type === "skip"
        ? visits.skipped(step, next.round, next.why, NOW)
        : ended(begun as StepStatus, outcomes[steps.length % outcomes.length] ?? true);
    steps[next.type === "run" ? (next.visit ?? steps.length) : steps.length] = after;
  }
}

const ended = (visit: StepStatus, succeeds: boolean): StepStatus =>
  succeeds
    ? visits.succeeded(visit, NOW, "")
    : { ...visit, state: "FAILED", finishedAt: NOW, cause: { code: "not_done" } };

const placesOf = (steps: readonly StepStatus[]) => steps.map(({ name, round }) => `${name} ${round}`);

test("any workflow ends within its bounds, whatever becomes of its stages", () => {
  fc.assert(
    fc.property(anyWorkflow, fc.array(fc.boolean(), { minLength: 1, maxLength: 10 }), (workflow, outcomes) => {
      const { steps } = carryOut(workflow, planOfWorkflow(workflow, new Map()), [], outcomes);
      expect(steps.length).toBeLessThanOrEqual(mostVisits(workflow));
      expect(new Set(placesOf(steps)).size, "each visit is one of its own").toBe(steps.length);
    }),
    { numRuns: 500 },
  );
});

test("an attempt after an attempt keeps its place, and ends within the same bounds", () => {
  const actions = fc.array(fc.constantFrom("retry", "resume", "adopt", "rerun", "restart_clean", "cancel" as const), {
    minLength: 1,
    maxLength: 5,
  });
  const outcomes = fc.array(fc.array(fc.boolean(), { minLength: 1, maxLength: 6 }), { minLength: 6, maxLength: 6 });
  fc.assert(
    fc.property(anyWorkflow, actions, outcomes, (workflow, asked, all) => {
      const plan = planOfWorkflow(workflow, new Map());
      let { end, steps } = carryOut(workflow, plan, [], all[0] ?? [true]);
      for (const [at, action] of asked.entries()) {
        if (end !== "failed") return;
        const before: EndedAttempt = {
          plan,
          params: {},
          steps,
          takeBackFirst: null,
          doneBefore: [],
          compensateFirst: null,
        };
        const inherited = inheritStages(before, action as "retry", workflow).steps;
        const isAnew = action === "rerun" || action === "restart_clean";
        if (isAnew) expect(inherited).toEqual([]);
        else expect(placesOf(inherited).slice(0, steps.length)).toEqual(placesOf(steps));
        // Whatever was done stays done, but for the stage that is entered again.
        const reopened = inherited.filter(({ state }) => state === "WAITING");
        expect(reopened.length).toBeLessThanOrEqual(1);
        if (action === "cancel") return;
        const made = carryOut(workflow, plan, inherited, all[at + 1] ?? [true]);
        const own = made.steps.filter(({ carriedOver }) => !carriedOver);
        expect(own.length).toBeLessThanOrEqual(mostVisits(workflow) + 1);
        ({ end, steps } = made);
      }
    }),
    { numRuns: 500 },
  );
});
