import type { JobState, Run } from "./run.ts";

/** What of a run its job's state follows from. */
export type JobEvidence = Pick<
  Run,
  "phase" | "action" | "cancelRequestedAt" | "compensateFirst" | "manual" | "error" | "nextRunId"
>;

/**
 * The state of the job that the run is an attempt at; undefined once a later attempt speaks for it. Nothing stores it: the
 * database has the same rule as an expression of its own, so that lists can filter by it.
 */
export function jobStateOf(run: JobEvidence): JobState | undefined {
  if (run.nextRunId !== null) return undefined;
  switch (run.phase) {
    case "PENDING":
      return "pending";
    case "RUNNING":
      return run.cancelRequestedAt === null && run.compensateFirst === null ? "running" : "compensating";
    case "SUCCEEDED":
      return run.action === "adopt" ? "reconciled" : "completed";
    case "CANCELED":
      return "cancelled";
    case "FAILED":
      return run.manual !== null || run.error?.retryable === false ? "failed_manual_intervention" : "failed_retryable";
  }
}
