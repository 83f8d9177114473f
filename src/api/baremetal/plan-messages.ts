import { fromJson, type MessageInitShape, toJson, type JsonObject as WireJsonObject } from "@bufbuild/protobuf";
import {
  type PlanSchema,
  StepSchema,
  type Plan as WirePlan,
  type Step as WireStep,
} from "../../../contract/baremetal/v1/baremetal_pb.js";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { PlanInput, PlanRecord, Step, StepInput } from "../../services/run/plans.ts";
import { timestampOf } from "../convert/fields.ts";

export const planFrom = ({ planId, displayName, steps }: WirePlan): PlanInput => ({
  planId,
  displayName,
  steps: steps.map(stepFrom),
});

/** Plans keep payloads as JSON, in the spelling of the contract. */
function stepFrom(step: WireStep): StepInput {
  const { name, timeoutSeconds, maxRetries, kind } = step;
  const json = toJson(StepSchema, step, { useProtoFieldName: true }) as Readonly<Record<string, JsonObject>>;
  return { name, timeoutSeconds, maxRetries, kind: kind.case, payload: json[kind.case ?? ""] ?? {} };
}

export const planOf = ({ plan, builtIn, createdAt }: PlanRecord): MessageInitShape<typeof PlanSchema> => ({
  planId: plan.planId,
  displayName: plan.displayName,
  steps: plan.steps.map(stepOf),
  builtIn,
  createdAt: timestampOf(createdAt),
});

/** The contract knows steps on machines alone: a step of another kind has its name, timeout and retries there, and no payload. */
export const stepOf = ({ name, timeoutSeconds, maxRetries, kind, payload }: Step): WireStep =>
  fromJson(StepSchema, {
    name,
    timeout_seconds: timeoutSeconds,
    max_retries: maxRetries,
    ...(KINDS.has(kind) && { [kind]: bothSpellings(payload) as WireJsonObject }),
  });

const KINDS: ReadonlySet<string> = new Set(StepSchema.oneofs.flatMap(({ fields }) => fields.map(({ name }) => name)));

/** Where the contract has two names for one thing, a reader of either finds it. */
function bothSpellings(payload: JsonObject): JsonObject {
  const { image_ref: image, cluster_ref: cluster } = payload;
  return {
    ...payload,
    ...(typeof image === "string" && image !== "" && { image }),
    ...(typeof cluster === "string" && cluster !== "" && { target_cluster: { cluster_id: cluster } }),
  };
}
