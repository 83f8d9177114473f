import { describe, expect, test } from "vitest";
import {
  ACTIVE_RUN_PHASES,
  currentStep,
  isActive,
  JOB_STATES,
  mayFollow,
  RUN_PHASE_OF_JOB,
  RUN_PHASES,
  type RunPhase,
  type StepState,
  type StepStatus,
} from "./run.ts";

describe("a run", () => {
  test("goes from PENDING to RUNNING to one of three ends, and can end without having begun", () => {
    const ways = RUN_PHASES.flatMap((from) => RUN_PHASES.filter((to) => mayFollow(from, to)).map((to) => [from, to]));
    expect(ways).toEqual([
      ["PENDING", "RUNNING"],
      ["PENDING", "FAILED"],
      ["PENDING", "CANCELED"],
      ["RUNNING", "SUCCEEDED"],
      ["RUNNING", "FAILED"],
      ["RUNNING", "CANCELED"],
    ]);
  });

  test("is active exactly while something can follow", () => {
    const goesOn = RUN_PHASES.filter((from) => RUN_PHASES.some((to) => mayFollow(from, to)));
    expect(RUN_PHASES.filter(isActive)).toEqual(goesOn);
    expect([...ACTIVE_RUN_PHASES]).toEqual(goesOn);
  });
});

describe("the phase of a run", () => {
  test.each([
    ["pending", "PENDING"],
    ["running", "RUNNING"],
    ["compensating", "RUNNING"],
    ["completed", "SUCCEEDED"],
    ["reconciled", "SUCCEEDED"],
    ["failed_retryable", "FAILED"],
    ["failed_manual_intervention", "FAILED"],
    ["cancelled", "CANCELED"],
  ] as const)("of a job that is %s is %s", (state, phase) => {
    expect(RUN_PHASE_OF_JOB[state]).toBe(phase);
  });

  test("is known for every state of a job, and every phase is that of some state", () => {
    expect(Object.keys(RUN_PHASE_OF_JOB).sort()).toEqual([...JOB_STATES].sort());
    expect([...new Set(Object.values(RUN_PHASE_OF_JOB))].sort()).toEqual([...RUN_PHASES].sort());
  });
});

describe("the current step", () => {
  const visit = (name: string, state: StepState): StepStatus => ({
    name,
    kind: "reboot",
    state,
    retryCount: 0,
    startedAt: null,
    finishedAt: null,
    message: "",
    carriedOver: false,
    nextAttemptAt: null,
    attemptStartedAt: null,
    actingBy: null,
    actingAt: null,
    actedAt: null,
    unanswered: null,
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
