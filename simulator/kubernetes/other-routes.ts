import { randomUUID } from "node:crypto";
import { z } from "zod";
import { allows } from "./access-rules.ts";
import { type ApiCall, type ApiReply, type ApiRoute, failure, notFound, ok, success } from "./api-call.ts";
import type { Secret } from "./bootstrap-token.ts";
import { clusterInfoKubeconfig } from "./kubeconfig.ts";
import { pageOf } from "./paging.ts";
import { isoSeconds } from "./pods.ts";

const SECRETS = "/api/v1/namespaces/([^/]+)/secrets";

/** Secrets, rights, and what clients look up about the cluster. */
export const OTHER_ROUTES: readonly ApiRoute[] = [
  ["GET", new RegExp(`^${SECRETS}$`), listSecrets],
  ["POST", new RegExp(`^${SECRETS}$`), createSecret],
  ["GET", new RegExp(`^${SECRETS}/([^/]+)$`), getSecret],
  ["DELETE", new RegExp(`^${SECRETS}/([^/]+)$`), deleteSecret],
  ["POST", /^\/apis\/authorization\.k8s\.io\/v1\/selfsubjectaccessreviews$/, reviewAccess],
  ["GET", /^\/api\/v1\/namespaces\/kube-public\/configmaps\/cluster-info$/, (call) => ok(clusterInfo(call))],
];

const reviewSchema = z.object({
  spec: z.object({
    resourceAttributes: z.object({
      verb: z.string(),
      group: z.string().optional(),
      resource: z.string(),
      subresource: z.string().optional(),
      namespace: z.string().optional(),
      name: z.string().optional(),
    }),
  }),
});
const secretSchema = z.object({
  apiVersion: z.literal("v1").optional(),
  kind: z.literal("Secret").optional(),
  metadata: z.object({
    name: z.string().regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/),
    namespace: z.string().optional(),
  }),
  type: z.string().optional(),
  data: z.record(z.string(), z.base64()).optional(),
  stringData: z.record(z.string(), z.string()).optional(),
});

function listSecrets(call: ApiCall): ApiReply {
  return pageOf(call, "SecretList", call.cluster.secrets(call.names[0] ?? ""), ({ metadata }) => metadata.name);
}

/** `kubectl auth can-i`. */
function reviewAccess({ user, body }: ApiCall): ApiReply {
  const read = reviewSchema.safeParse(body);
  if (!read.success) return failure(422, "SelfSubjectAccessReview is invalid: spec.resourceAttributes: Required value");
  const { verb, group = "", resource, subresource = "", namespace = "", name = "" } = read.data.spec.resourceAttributes;
  const named = subresource === "" ? resource : `${resource}/${subresource}`;
  const allowed = allows(user, { verb, group, resource: named, namespace, name });
  const review = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview" };
  return { status: 201, body: { ...review, metadata: {}, spec: read.data.spec, status: { allowed } } };
}

function createSecret({ cluster, clock, names: [namespace = ""], body }: ApiCall): ApiReply {
  const read = secretSchema.safeParse(body);
  if (!read.success)
    return failure(422, `Secret is invalid: ${read.error.issues[0]?.path.join(".")}: ${read.error.issues[0]?.message}`);
  const { metadata, type = "Opaque", data = {}, stringData = {} } = read.data;
  if (!cluster.objects.namespaces().includes(namespace)) return notFound("namespaces", namespace);
  if (metadata.namespace !== undefined && metadata.namespace !== namespace)
    return failure(400, "the namespace of the provided object does not match the namespace sent on the request");
  if (cluster.objects.isTerminating(namespace))
    return failure(
      403,
      `secrets "${metadata.name}" is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`,
    );
  if (cluster.secret(namespace, metadata.name) !== undefined)
    return failure(409, `secrets "${metadata.name}" already exists`, "AlreadyExists");
  const encoded = Object.entries(stringData).map(([key, text]) => [key, Buffer.from(text).toString("base64")] as const);
  const secret: Secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: metadata.name, namespace, uid: randomUUID(), creationTimestamp: isoSeconds(clock.realNow()) },
    type,
    data: { ...data, ...Object.fromEntries(encoded) },
  };
  cluster.saveSecret(secret);
  return { status: 201, body: secret };
}

function getSecret({ cluster, names: [namespace = "", name = ""] }: ApiCall): ApiReply {
  const secret = cluster.secret(namespace, name);
  return secret === undefined ? notFound("secrets", name) : ok(secret);
}

function deleteSecret({ cluster, names: [namespace = "", name = ""] }: ApiCall): ApiReply {
  if (cluster.secret(namespace, name) === undefined) return notFound("secrets", name);
  cluster.deleteSecret(namespace, name);
  return success;
}

const clusterInfo = ({ cluster, endpoint }: ApiCall) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "cluster-info", namespace: "kube-public" },
  data: { kubeconfig: clusterInfoKubeconfig(cluster, endpoint) },
});
