import type { MessageInitShape } from "@bufbuild/protobuf";
import type { PreviewRunResponseSchema } from "../../../../contract/millwright/v1/run_pb.js";
import type { RunPreview } from "../../../services/run/preview.ts";
import { WIRE_PHASES } from "../../baremetal/machine-messages.ts";
import { stepOf } from "../../baremetal/plan-messages.ts";
import { durationOf } from "../../convert/fields.ts";

export const previewOf = (preview: RunPreview): MessageInitShape<typeof PreviewRunResponseSchema> => ({
  planId: preview.planId,
  steps: preview.steps.map(({ step, needs, reboots, expectedDuration, children }) => ({
    step: stepOf(step),
    needs: [...needs],
    reboots,
    expectedDuration: durationOf(expectedDuration ?? null),
    children: children.map(({ target, steps }) => ({ target: { ...target }, steps: steps.map(({ name }) => name) })),
  })),
  missingCapabilities: [...preview.missingCapabilities],
  conflicts: [...preview.conflicts],
  reboots: preview.reboots,
  expectedDuration: durationOf(preview.expectedDuration ?? null),
  phaseOnSuccess: WIRE_PHASES[preview.phaseOnSuccess],
  warnings: [...preview.warnings],
  disturbsCluster: preview.disturbsCluster,
});
