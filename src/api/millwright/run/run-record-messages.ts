import type { MessageInitShape, JsonObject as WireJsonObject } from "@bufbuild/protobuf";
import type {
  ChildRunSchema,
  RunRecordSchema,
  StepDetailSchema,
  WatchRunsResponseSchema,
} from "../../../../contract/millwright/v1/run_pb.js";
import type { RunDeps } from "../../../services/run/deps.ts";
import { currentStep, type Run, type RunTree, type StepStatus, shownReceipt } from "../../../services/run/read.ts";
import type { RunEvent } from "../../../services/run/watch.ts";
import { runEventOf, runOf, WIRE_PHASE } from "../../baremetal/run-messages.ts";
import { timestampOf } from "../../convert/fields.ts";

type Deps = Pick<RunDeps, "steps">;

/** What baremetal.v1 does not know of a run. */
const moreOf = (deps: Deps, { target, parent, steps }: Run) => ({
  target: { ...target },
  ...(parent && { parent: { ...parent } }),
  stepDetails: steps.map((step) => detailOf(deps, step)),
});

function detailOf(deps: Deps, step: StepStatus): MessageInitShape<typeof StepDetailSchema> {
  const { name, round, state, cause, verdict } = step;
  const receipt = shownReceipt(deps, step);
  const facts = Object.entries(cause?.facts ?? {}).map(([fact, value]) => [fact, String(value)]);
  return {
    name,
    round,
    skipped: state === "SKIPPED",
    verdict,
    ...(cause && { cause: { code: cause.code, facts: Object.fromEntries(facts) } }),
    ...(receipt && { receipt: receipt as WireJsonObject }),
  };
}

export const recordOf = (
  deps: Deps,
  { run, children }: Pick<RunTree, "run"> & Partial<RunTree>,
): MessageInitShape<typeof RunRecordSchema> => ({
  run: runOf(run),
  ...moreOf(deps, run),
  children: (children ?? []).map(childOf),
});

const childOf = ({ run, children }: RunTree): MessageInitShape<typeof ChildRunSchema> => ({
  runId: run.id,
  target: { ...run.target },
  step: run.parent?.step ?? "",
  round: run.parent?.round ?? 0,
  phase: WIRE_PHASE[run.phase],
  currentStep: currentStep(run),
  message: run.message || (run.steps.at(-1)?.message ?? ""),
  startedAt: timestampOf(run.startedAt),
  finishedAt: timestampOf(run.finishedAt),
  children: children.map(childOf),
});

export const watchedOf = (deps: Deps, event: RunEvent): MessageInitShape<typeof WatchRunsResponseSchema> => ({
  event: runEventOf(event),
  ...moreOf(deps, event.run),
});
