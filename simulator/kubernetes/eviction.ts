import { z } from "zod";
import { type ApiCall, type ApiReply, failure, success } from "./api-call.ts";
import type { Cluster } from "./cluster.ts";
import type { Budget } from "./cluster-objects.ts";
import type { PodRecord } from "./pods.ts";

const evictionSchema = z.object({
  apiVersion: z.enum(["policy/v1", "policy/v1beta1"]).optional(),
  kind: z.literal("Eviction").optional(),
  metadata: z.object({ name: z.string().optional(), namespace: z.string().optional() }).optional(),
  deleteOptions: z
    .object({
      preconditions: z.object({ uid: z.string().optional(), resourceVersion: z.string().optional() }).optional(),
    })
    .optional(),
});

/** What an API server says to `POST …/eviction`, refusals first. */
export function evict({ cluster, body }: Pick<ApiCall, "cluster" | "body">, pod: PodRecord): ApiReply {
  const read = evictionSchema.safeParse(body ?? {});
  if (!read.success)
    return failure(400, `Eviction in version "v1" cannot be handled: ${read.error.issues[0]?.message}`);
  const { metadata, deleteOptions } = read.data;
  if (metadata?.name !== undefined && metadata.name !== pod.name)
    return failure(400, "name in URL does not match name in Eviction object");
  if (cluster.objects.isTerminating(pod.namespace)) return terminating(pod);
  const uid = deleteOptions?.preconditions?.uid;
  if (uid !== undefined && uid !== pod.uid)
    return failure(
      409,
      `Operation cannot be fulfilled on pods "${pod.name}": the UID in the precondition (${uid}) does not match the UID in record (${pod.uid}). The object might have been deleted and then recreated`,
    );
  if (pod.goneAt === null && pod.phase === "Running") {
    const refusal = refusedByBudgets(cluster, pod);
    if (refusal !== undefined) return refusal;
  }
  cluster.evict(pod);
  return { ...success, status: 201 };
}

const terminating = ({ name, namespace }: PodRecord): ApiReply =>
  failure(
    403,
    `pods "${name}" is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`,
    "Forbidden",
    [
      {
        reason: "NamespaceTerminating",
        message: `namespace ${namespace} is being terminated`,
        field: "metadata.namespace",
      },
    ],
  );

function refusedByBudgets(cluster: Cluster, pod: PodRecord): ApiReply | undefined {
  const budgets = cluster.objects.budgets().filter((budget) => covers(budget, pod));
  const [budget] = budgets;
  if (budget === undefined) return undefined;
  if (budgets.length > 1)
    return failure(
      500,
      "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    );
  const healthy = cluster
    .pods()
    .filter((each) => covers(budget, each) && each.goneAt === null && each.phase === "Running").length;
  if (healthy > budget.minAvailable) return undefined;
  return failure(429, "Cannot evict pod as it would violate the pod's disruption budget.", "TooManyRequests", [
    {
      reason: "DisruptionBudget",
      message: `The disruption budget ${budget.name} needs ${budget.minAvailable} healthy pods and has ${healthy} currently`,
    },
  ]);
}

const covers = (budget: Budget, pod: PodRecord): boolean =>
  budget.namespace === pod.namespace &&
  Object.entries(budget.labels).every(([key, value]) => pod.labels[key] === value);
