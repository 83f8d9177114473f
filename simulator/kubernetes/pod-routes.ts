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
  unknownField,
} from "./api-call.ts";
import { evict } from "./eviction.ts";
import { pageOf } from "./paging.ts";
import { fieldOfPod, isDaemon, POD_FIELDS, type PodRecord, podKey, podObject } from "./pods.ts";

const PODS = "/api/v1/namespaces/([^/]+)/pods";

export const POD_ROUTES: readonly ApiRoute[] = [
  ["GET", /^\/api\/v1\/pods$/, (call) => listPods(call)],
  ["GET", new RegExp(`^${PODS}$`), (call) => listPods(call, call.names[0])],
  ["GET", new RegExp(`^${PODS}/([^/]+)$`), getPod],
  ["DELETE", new RegExp(`^${PODS}/([^/]+)$`), (call) => withPod(call, (pod) => remove(call, pod))],
  ["POST", new RegExp(`^${PODS}/([^/]+)/eviction$`), (call) => withPod(call, (pod) => evict(call, pod))],
  ["GET", /^\/apis\/apps\/v1\/namespaces\/([^/]+)\/daemonsets\/([^/]+)$/, getDaemonSet],
];

function listPods(call: ApiCall, namespace?: string): ApiReply {
  const { cluster, clock, query, asTable } = call;
  const unknown = unknownField(query, POD_FIELDS);
  if (unknown !== undefined) return unknown;
  const pods = cluster
    .pods()
    .filter(
      (pod) =>
        (namespace === undefined || pod.namespace === namespace) &&
        selects(query.get("fieldSelector"), (key) => fieldOfPod(pod, key)) &&
        selects(query.get("labelSelector"), (key) => pod.labels[key]),
    );
  if (!asTable) {
    const items = pods.map((pod) => podObject(pod, clock.realNow()));
    return pageOf(call, "PodList", items, ({ metadata }) => podKey(metadata));
  }
  const rows = pods.map((pod) => ({
    cells: [pod.name, "1/1", pod.phase, "0", age(pod.createdAt, clock.realNow())],
    object: podObject(pod, clock.realNow()),
  }));
  return ok(table(["Name", "Ready", "Status", "Restarts", "Age"], rows));
}

function withPod({ cluster, names: [namespace, name] }: ApiCall, answer: (pod: PodRecord) => ApiReply): ApiReply {
  const pod = cluster.pods().find((each) => each.namespace === namespace && each.name === name);
  return pod === undefined ? notFound("pods", name ?? "") : answer(pod);
}

function getPod(call: ApiCall): ApiReply {
  return withPod(call, (pod) => ok(podObject(pod, call.clock.realNow())));
}

function remove({ cluster }: ApiCall, pod: PodRecord): ApiReply {
  cluster.evict(pod);
  return success;
}

function getDaemonSet({ cluster, names: [namespace = "", name = ""] }: ApiCall): ApiReply {
  const pod = cluster.pods().find((each) => isDaemon(each) && each.owner === name && each.namespace === namespace);
  if (pod === undefined) return failure(404, `daemonsets.apps "${name}" not found`);
  return ok({ apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name, namespace }, spec: {}, status: {} });
}
