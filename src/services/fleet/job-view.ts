import type { JsonObject } from "../../kernel/lifecycle.ts";
import { type FailureClass, failureClassOf } from "../../lifecycles/fleet-node/failure-classes.ts";
import { jobStateOf } from "../../runs/model/job-state.ts";
import type { JobState, Run, StepStatus } from "../../runs/model/run.ts";
import { FLEET_RUN_TYPES, type FleetWorkflow } from "../../runs/workflows/fleet/words.ts";

/** The latest job of a node, as people read it. Nothing stores it: it is the latest run of the job. */
export interface FleetJobView {
  readonly runId: string;
  readonly workflow: FleetWorkflow;
  /** ONBOARD or DECOMMISSION. */
  readonly type: string;
  /** Of a decommission; empty otherwise. */
  readonly mode: string;
  readonly state: JobState;
  /** The stage that it is at, or came to an end at; empty before the first. */
  readonly stage: string;
  /** How often the job has entered the stage. */
  readonly round: number;
  /** How often people have begun the job again, from 1 on. */
  readonly attempt: number;
  /** Attempts at the stage that failed in this round. */
  readonly stageRetries: number;
  /** What it failed of, by the closed list; empty unless it did. */
  readonly failureClass: FailureClass | "";
  readonly message: string;
  readonly startedBy: string;
  readonly createdAt: Date;
  readonly finishedAt: Date | null;
}

const isFleetWorkflow = (kind: string | undefined): kind is FleetWorkflow =>
  kind !== undefined && Object.hasOwn(FLEET_RUN_TYPES, kind);

export function jobViewOf(run: Run): FleetJobView | null {
  const { workflow } = run.plan;
  if (!isFleetWorkflow(workflow)) return null;
  const visit = currentVisit(run);
  const failure = run.error?.details;
  return {
    ...{ runId: run.id, workflow, type: FLEET_RUN_TYPES[workflow], mode: run.params.mode ?? "" },
    state: jobStateOf(run) ?? "pending",
    stage: failure?.step ?? visit?.name ?? "",
    round: visit?.round ?? 0,
    attempt: run.attempt,
    stageRetries: visit?.retryCount ?? 0,
    failureClass: run.phase === "FAILED" ? failureClassOf({ code: failure?.cause ?? "unknown" }) : "",
    message: messageOf(run, visit),
    startedBy: run.initiator,
    createdAt: run.createdAt,
    finishedAt: run.finishedAt,
  };
}

/** The site bootstrap bundle by the policy that the job was started with: every stage is given the whole policy. */
export function bundleOf({ plan }: Pick<Run, "plan">): string | null {
  const { policy } = plan.steps[0]?.payload ?? {};
  const name = (policy as JsonObject | undefined)?.site_bootstrap_bundle_ref;
  return typeof name === "string" ? name : null;
}

/** A stage that failed in an attempt before is not where the job is, once that has gone on. */
const currentVisit = ({ steps, phase }: Pick<Run, "steps" | "phase">): StepStatus | undefined =>
  steps.findLast(({ state }) => state === "RUNNING") ??
  (phase === "FAILED" ? steps.findLast(({ state }) => state === "FAILED") : undefined) ??
  steps.findLast(({ state }) => state === "WAITING") ??
  steps.at(-1);

/** Who froze a job said why: that comes first, since nothing else leads on. */
function messageOf({ message, manual }: Run, visit: StepStatus | undefined): string {
  const told = message || (visit?.message ?? "");
  if (manual === null) return told;
  return `marked by ${manual.by}: ${manual.comment}${told === "" ? "" : `; ${told}`}`;
}
