import { describe, expect, test } from "vitest";
import { STAY } from "../../kernel/lifecycle.ts";
import { runLifecycle } from "./lifecycle.ts";
import {
  ACTIVE_RUN_PHASES,
  currentStep,
  isActive,
  RUN_PHASES,
  type RunPhase,
  type StepState,
  type StepStatus,
} from "./run.ts";

/** From where to where the table leads. */
const ways = runLifecycle.transitions.flatMap(([from, , to]) => (to === STAY ? [] : [[from, to]]));

describe("a run", () => {
  test("goes from PENDING to RUNNING to one of three ends, and can end without having begun", () => {
    expect(ways).toEqual([
      ["PENDING", "CANCELED"],
      ["PENDING", "FAILED"], // people took over a workflow that had not begun
      ["PENDING", "FAILED"], // somebody began to use what it would disturb
      ["PENDING", "CANCELED"], // a target follows how it ends
      ["PENDING", "RUNNING"],
      ["RUNNING", "SUCCEEDED"],
      ["RUNNING", "CANCELED"],
      ["RUNNING", "FAILED"],
    ]);
  });

  test("is active exactly while something can follow", () => {
    const goesOn = RUN_PHASES.filter((phase) => ways.some(([from]) => from === phase));
    expect(RUN_PHASES.filter(isActive)).toEqual(goesOn);
    expect([...ACTIVE_RUN_PHASES]).toEqual(goesOn);
  });
});

describe("the current step", () => {
  const visit = (name: string, state: StepState): StepStatus => ({
    name,
    round: 1,
    kind: "reboot",
    state,
    retryCount: 0,
    startedAt: null,
    finishedAt: null,
    message: "",
    cause: null,
    verdict: "",
    carriedOver: false,
    nextAttemptAt: null,
    attemptStartedAt: null,
    actingBy: null,
    actingAt: null,
    streamedAt: null,
    actedAt: null,
    unanswered: null,
    unansweredCause: null,
    failing: null,
    takenBack: false,
    evidence: null,
    receipt: null,
    toTakeBack: null,
    receiptToTakeBack: null,
    resumed: false,
    needsPerson: false,
  });

  test.each<[RunPhase, StepStatus[], string]>([
    ["PENDING", [], ""],
    ["RUNNING", [visit("a", "SUCCEEDED"), visit("b", "RUNNING")], "b"],
    ["RUNNING", [visit("a", "WAITING")], "a"],
    ["RUNNING", [visit("a", "SUCCEEDED")], ""],
    ["CANCELED", [visit("a", "RUNNING")], ""],
    ["FAILED", [visit("a", "FAILED")], ""],
  ])("of a run that is %s with %j is %j", (phase, steps, name) => {
    expect(currentStep({ phase, steps })).toBe(name);
  });
});
