import { randomUUID } from "node:crypto";
import { z } from "zod";
import {
  type ApiCall,
  type ApiReply,
  type ApiRoute,
  age,
  failure,
  notFound,
  ok,
  selects,
  success,
  table,
} from "./api-call.ts";
import type { Secret } from "./bootstrap-token.ts";
import { clusterInfoKubeconfig } from "./kubeconfig.ts";
import { fieldOfPod, isoSeconds, type PodRecord, podObject } from "./pods.ts";

const PODS = "/api/v1/namespaces/([^/]+)/pods";
const SECRETS = "/api/v1/namespaces/([^/]+)/secrets";

/** Pods, secrets, and what clients look up about the cluster. */
export const OTHER_ROUTES: readonly ApiRoute[] = [
  ["GET", /^\/api\/v1\/pods$/, (call) => listPods(call)],
  ["GET", new RegExp(`^${PODS}$`), (call) => listPods(call, call.names[0])],
  ["GET", new RegExp(`^${PODS}/([^/]+)$`), getPod],
  ["DELETE", new RegExp(`^${PODS}/([^/]+)$`), removePod],
  ["POST", new RegExp(`^${PODS}/([^/]+)/eviction$`), removePod],
  ["GET", new RegExp(`^${SECRETS}$`), listSecrets],
  ["POST", new RegExp(`^${SECRETS}$`), createSecret],
  ["GET", new RegExp(`^${SECRETS}/([^/]+)$`), getSecret],
  ["DELETE", new RegExp(`^${SECRETS}/([^/]+)$`), deleteSecret],
  ["GET", /^\/api\/v1\/namespaces\/kube-public\/configmaps\/cluster-info$/, (call) => ok(clusterInfo(call))],
  ["GET", /^\/apis\/apps\/v1\/namespaces\/([^/]+)\/daemonsets\/([^/]+)$/, getDaemonSet],
];

const secretSchema = z.object({
  metadata: z.object({ name: z.string().regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/) }),
  type: z.string().optional(),
  data: z.record(z.string(), z.base64()).optional(),
  stringData: z.record(z.string(), z.string()).optional(),
});

function listPods({ cluster, clock, query, asTable }: ApiCall, namespace?: string): ApiReply {
  const pods = cluster
    .pods()
    .filter(
      (pod) =>
        (namespace === undefined || pod.namespace === namespace) &&
        selects(query.get("fieldSelector"), (key) => fieldOfPod(pod, key)) &&
        selects(query.get("labelSelector"), (key) => (key === "app" ? pod.owner.name : undefined)),
    );
  const items = pods.map((pod) => podObject(pod, clock.realNow()));
  if (!asTable)
    return ok({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: String(cluster.version) }, items });
  const rows = pods.map((pod, index) => ({
    cells: [pod.name, "1/1", "Running", "0", age(pod.createdAt, clock.realNow())],
    object: items[index],
  }));
  return ok(table(["Name", "Ready", "Status", "Restarts", "Age"], rows));
}

const findPod = ({ cluster, names: [namespace, name] }: ApiCall): PodRecord | undefined =>
  cluster.pods().find((pod) => pod.namespace === namespace && pod.name === name);

function getPod(call: ApiCall): ApiReply {
  const pod = findPod(call);
  return pod === undefined ? notFound("pods", call.names[1] ?? "") : ok(podObject(pod, call.clock.realNow()));
}

function removePod(call: ApiCall): ApiReply {
  const pod = findPod(call);
  if (pod === undefined) return notFound("pods", call.names[1] ?? "");
  call.cluster.evict(pod);
  return { ...success, status: 201 };
}

function getDaemonSet({ cluster, names: [namespace = "", name = ""] }: ApiCall): ApiReply {
  const pod = cluster
    .pods()
    .find(({ owner, ...each }) => owner.kind === "DaemonSet" && owner.name === name && each.namespace === namespace);
  if (pod === undefined) return notFound("daemonsets.apps", name);
  return ok({ apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name, namespace }, spec: {}, status: {} });
}

function listSecrets({ cluster, names: [namespace = ""] }: ApiCall): ApiReply {
  const items = cluster.secrets(namespace);
  return ok({ kind: "SecretList", apiVersion: "v1", metadata: { resourceVersion: String(cluster.version) }, items });
}

function createSecret({ cluster, clock, names: [namespace = ""], body }: ApiCall): ApiReply {
  const read = secretSchema.safeParse(body);
  if (!read.success)
    return failure(422, `Secret is invalid: ${read.error.issues[0]?.path.join(".")}: ${read.error.issues[0]?.message}`);
  const { metadata, type = "Opaque", data = {}, stringData = {} } = read.data;
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
