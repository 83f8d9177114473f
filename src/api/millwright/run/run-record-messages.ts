import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ChildRunSchema,
  RunRecordSchema,
  WatchRunsResponseSchema,
} from "../../../../contract/millwright/v1/run_pb.js";
import { currentStep, type Run } from "../../../services/run/read.ts";
import type { RunEvent } from "../../../services/run/watch.ts";
import { runEventOf, runOf, WIRE_PHASE } from "../../baremetal/run-messages.ts";

const placeOf = ({ target, parent }: Run) => ({ target: { ...target }, ...(parent && { parent: { ...parent } }) });

export const recordOf = (run: Run, children: readonly Run[] = []): MessageInitShape<typeof RunRecordSchema> => ({
  run: runOf(run),
  ...placeOf(run),
  children: children.map(childOf),
});

const childOf = (run: Run): MessageInitShape<typeof ChildRunSchema> => ({
  runId: run.id,
  target: { ...run.target },
  step: run.parent?.step ?? "",
  round: run.parent?.round ?? 0,
  phase: WIRE_PHASE[run.phase],
  currentStep: currentStep(run),
  message: run.message,
});

export const watchedOf = (event: RunEvent): MessageInitShape<typeof WatchRunsResponseSchema> => ({
  event: runEventOf(event),
  ...placeOf(event.run),
});
