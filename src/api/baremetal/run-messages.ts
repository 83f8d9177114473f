import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type LogChunkSchema,
  Run_Phase,
  type RunEventSchema,
  type RunSchema,
  StepStatus_State,
} from "../../../contract/baremetal/v1/baremetal_pb.js";
import type { LogRow } from "../../services/run/logs.ts";
import {
  currentStep,
  jobStateOf,
  type Run,
  type RunPhase,
  type StepState,
  type StepStatus,
} from "../../services/run/read.ts";
import type { RunEvent } from "../../services/run/watch.ts";
import { timestampOf } from "../convert/fields.ts";
import { planOf } from "./plan-messages.ts";

export const WIRE_PHASE = {
  PENDING: Run_Phase.PENDING,
  RUNNING: Run_Phase.RUNNING,
  SUCCEEDED: Run_Phase.SUCCEEDED,
  FAILED: Run_Phase.FAILED,
  CANCELED: Run_Phase.CANCELED,
} as const satisfies Record<RunPhase, Run_Phase>;

const WIRE_STATE = {
  WAITING: StepStatus_State.WAITING,
  RUNNING: StepStatus_State.RUNNING,
  SUCCEEDED: StepStatus_State.SUCCEEDED,
  FAILED: StepStatus_State.FAILED,
  // The contract has no word for it: nothing is left to do, and the message says that nothing was done.
  SKIPPED: StepStatus_State.SUCCEEDED,
} as const satisfies Record<StepState, StepStatus_State>;

/** Visits in their order: a step that was entered again is there once for each time. */
export const stepOf = (step: StepStatus) => ({
  name: step.name,
  kind: step.kind,
  state: WIRE_STATE[step.state],
  retryCount: step.retryCount,
  startedAt: timestampOf(step.startedAt),
  finishedAt: timestampOf(step.finishedAt),
  message: step.state === "SKIPPED" ? `skipped: ${step.message}` : step.message,
  carriedOver: step.carriedOver,
  nextAttemptAt: timestampOf(step.nextAttemptAt),
});

export const runOf = (run: Run): MessageInitShape<typeof RunSchema> => ({
  runId: run.id,
  machineId: run.machineId ?? "",
  requestId: run.requestId,
  type: run.type,
  planId: run.plan.planId,
  phase: WIRE_PHASE[run.phase],
  steps: run.steps.map(stepOf),
  currentStep: currentStep(run),
  createdAt: timestampOf(run.createdAt),
  startedAt: timestampOf(run.startedAt),
  finishedAt: timestampOf(run.finishedAt),
  ...(run.error && { error: { ...run.error, details: { ...run.error.details } } }),
  message: run.message,
  jobId: run.jobId,
  attempt: run.attempt,
  previousRunId: run.previousRunId ?? "",
  params: { ...run.params },
  plan: planOf({ plan: run.plan, builtIn: false, createdAt: null }),
  initiator: run.initiator,
  waitingFor: run.waitingFor,
  cancelRequestedAt: timestampOf(run.cancelRequestedAt),
  residue: [...run.residue],
  version: BigInt(run.version),
  action: run.action,
  jobState: jobStateOf(run) ?? "",
  nextRunId: run.nextRunId ?? "",
  ...(run.manual && { manual: { ...run.manual, at: timestampOf(run.manual.at) } }),
});

export const runEventOf = ({ at, run, message, cursor }: RunEvent): MessageInitShape<typeof RunEventSchema> => ({
  ts: timestampOf(at),
  snapshot: runOf(run),
  message,
  cursor,
});

export const logChunkOf = (runId: string, row: LogRow): MessageInitShape<typeof LogChunkSchema> => ({
  ts: timestampOf(row.at),
  runId,
  stream: row.stream,
  data: row.data,
  seq: BigInt(row.seq),
  step: row.step,
});
