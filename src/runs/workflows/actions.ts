import type { JobState, RunAction } from "../model/run.ts";

/** What people do with a job of a workflow: each makes the next attempt at it. */
export type WorkflowAction = Exclude<RunAction, "start">;

interface ActionRule {
  /** As the command line spells it. */
  readonly command: string;
  readonly of: readonly JobState[];
}

const FAILED = ["failed_retryable", "failed_manual_intervention"] as const;

/**
 * The operator's actions on jobs of workflows, by the job's state. What has come to its end, or was reconciled, is done: nothing but
 * a new job follows. A job that lives is resumed without effect, since it goes on by itself, and a cancel of it is the run's own.
 */
// biome-ignore format: a table is read by its columns
export const WORKFLOW_ACTIONS: Readonly<Record<WorkflowAction, ActionRule>> = {
  retry:         { command: "retry",         of: FAILED },
  resume:        { command: "resume",        of: FAILED },
  rerun:         { command: "rerun",         of: [...FAILED, "cancelled"] },
  restart_clean: { command: "restart-clean", of: [...FAILED, "cancelled"] },
  adopt:         { command: "adopt",         of: FAILED },
  cancel:        { command: "cancel",        of: FAILED },
};
