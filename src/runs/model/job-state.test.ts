import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type JobEvidence, jobStateOf } from "./job-state.ts";
import { JOB_STATES, type JobState, RUN_ACTIONS, RUN_PHASES, type RunPhase } from "./run.ts";

/** What a job's state is for the run that is its latest attempt, by the specification. */
const RUN_PHASE_OF_JOB: Readonly<Record<JobState, RunPhase>> = {
  pending: "PENDING",
  running: "RUNNING",
  compensating: "RUNNING",
  completed: "SUCCEEDED",
  reconciled: "SUCCEEDED",
  failed_retryable: "FAILED",
  failed_manual_intervention: "FAILED",
  cancelled: "CANCELED",
};

const at = new Date("2026-01-01T00:00:00Z");
const error = (retryable: boolean) => ({ code: "EXECUTION_FAILED" as const, message: "", retryable, details: {} });
const manual = { at, by: "ann", comment: "fan broken" };
const run = (evidence: Partial<JobEvidence>): JobEvidence => ({
  phase: "PENDING",
  action: "start",
  cancelRequestedAt: null,
  compensateFirst: null,
  manual: null,
  error: null,
  nextRunId: null,
  ...evidence,
});

const anyRun: fc.Arbitrary<JobEvidence> = fc.record({
  phase: fc.constantFrom(...RUN_PHASES),
  action: fc.constantFrom(...RUN_ACTIONS),
  cancelRequestedAt: fc.constantFrom(null, at),
  compensateFirst: fc.constantFrom(null, { step: "a", evidence: {} }),
  manual: fc.constantFrom(null, manual),
  error: fc.constantFrom(null, error(true), error(false)),
  nextRunId: fc.constantFrom(null, "run-2"),
});

describe("the state of a job", () => {
  test.each([
    ["pending", { phase: "PENDING" }],
    ["pending", { phase: "PENDING", cancelRequestedAt: at }],
    ["running", { phase: "RUNNING" }],
    ["compensating", { phase: "RUNNING", cancelRequestedAt: at }],
    ["compensating", { phase: "RUNNING", action: "restart_clean", compensateFirst: { step: "a", evidence: {} } }],
    ["pending", { phase: "PENDING", action: "restart_clean", compensateFirst: { step: "a", evidence: {} } }],
    ["completed", { phase: "SUCCEEDED" }],
    ["completed", { phase: "SUCCEEDED", action: "resume" }],
    ["reconciled", { phase: "SUCCEEDED", action: "adopt" }],
    ["failed_retryable", { phase: "FAILED", error: error(true) }],
    ["failed_retryable", { phase: "FAILED", action: "adopt" }],
    ["failed_manual_intervention", { phase: "FAILED", error: error(false) }],
    ["failed_manual_intervention", { phase: "FAILED", error: error(true), manual }],
    ["cancelled", { phase: "CANCELED", cancelRequestedAt: at }],
  ] as const)("is %s for %j", (state, evidence) => {
    expect(jobStateOf(run(evidence))).toBe(state);
  });

  test("is told by the latest attempt alone, and projects to its phase", () => {
    fc.assert(
      fc.property(anyRun, (one) => {
        const state = jobStateOf(one);
        if (one.nextRunId !== null) return state === undefined;
        return state !== undefined && RUN_PHASE_OF_JOB[state] === one.phase;
      }),
    );
  });

  test("projects to every phase of a run", () => {
    expect(Object.keys(RUN_PHASE_OF_JOB).sort()).toEqual([...JOB_STATES].sort());
    expect([...new Set(Object.values(RUN_PHASE_OF_JOB))].sort()).toEqual([...RUN_PHASES].sort());
  });

  test("is each of the eight for some run", () => {
    const seen = new Set(fc.sample(anyRun, 2_000).map(jobStateOf));
    expect(JOB_STATES.filter((state) => !seen.has(state))).toEqual([]);
  });
});
