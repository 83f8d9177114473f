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
  unknownField,
} from "./api-call.ts";
import { isReady, type NodeObject, nodeObject } from "./node-object.ts";
import type { NodeRecord } from "./node-record.ts";
import { pageOf } from "./paging.ts";
import { jsonPatch, mergePatch, UnfitPatch } from "./patches.ts";

export const NODE_ROUTES: readonly ApiRoute[] = [
  ["GET", /^\/api\/v1\/nodes$/, listNodes],
  ["POST", /^\/api\/v1\/nodes$/, registerNode],
  ["GET", /^\/api\/v1\/nodes\/([^/]+)$/, getNode],
  ["PATCH", /^\/api\/v1\/nodes\/([^/]+)$/, patchNode],
  ["DELETE", /^\/api\/v1\/nodes\/([^/]+)$/, deleteNode],
];

/** The part of a node that others than its kubelet may write. */
const writableSchema = z.object({
  metadata: z.object({
    resourceVersion: z.string().optional(),
    labels: z.record(z.string(), z.string()).optional(),
    annotations: z.record(z.string(), z.string()).optional(),
  }),
  spec: z
    .object({
      unschedulable: z.boolean().optional(),
      taints: z.array(z.object({ key: z.string(), value: z.string().optional(), effect: z.string() })).optional(),
    })
    .optional(),
});

const text = z.string().max(253);
/** What a kubelet says of itself when it registers. */
const registrationSchema = z.object({
  metadata: z.object({
    name: z.string().regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/),
    labels: z.record(text, text).default({}),
  }),
  status: z.object({
    conditions: z.array(z.object({ type: text, status: text })).default([]),
    addresses: z.array(z.object({ type: text, address: text })).default([]),
    nodeInfo: z.object({ bootID: text, machineID: text, systemUUID: text, kubeletVersion: text }),
  }),
});

type NodePatch = Pick<ApiCall, "cluster" | "clock" | "names" | "body" | "contentType">;

/** Taints that follow from the node's state are not the client's to set. */
const OWN_TAINTS = new Set(["node.kubernetes.io/unschedulable", "node.kubernetes.io/unreachable"]);

export function selectedNodes({ cluster, clock, query }: Pick<ApiCall, "cluster" | "clock" | "query">): NodeObject[] {
  return cluster
    .nodes()
    .map((record) => nodeObject(cluster, record, clock))
    .filter(
      ({ metadata, spec }) =>
        selects(query.get("fieldSelector"), (key) =>
          key === "metadata.name"
            ? metadata.name
            : key === "spec.unschedulable"
              ? String("unschedulable" in spec)
              : undefined,
        ) && selects(query.get("labelSelector"), (key) => (metadata.labels as Record<string, string>)[key]),
    );
}

function listNodes(call: ApiCall): ApiReply {
  const unknown = unknownField(call.query, ["metadata.name", "spec.unschedulable"]);
  if (unknown !== undefined) return unknown;
  const items = selectedNodes(call);
  return call.asTable ? ok(nodeTable(items, call)) : pageOf(call, "NodeList", items, ({ metadata }) => metadata.name);
}

function registerNode(call: ApiCall): ApiReply {
  const read = registrationSchema.safeParse(call.body);
  if (!read.success) {
    const [issue] = read.error.issues;
    return failure(422, `Node is invalid: ${issue?.path.join(".")}: ${issue?.message}`);
  }
  const { metadata, status } = read.data;
  const own = /^system:node:(.+)$/.exec(call.user.name)?.[1];
  if (own !== undefined && own !== metadata.name)
    return failure(
      403,
      `nodes "${metadata.name}" is forbidden: node "${own}" is not allowed to modify node "${metadata.name}"`,
    );
  const ready = status.conditions.some((each) => each.type === "Ready" && each.status === "True");
  const node = { ...metadata, info: status.nodeInfo, reported: { ready, addresses: status.addresses } };
  if (!call.cluster.register(node)) return failure(409, `nodes "${metadata.name}" already exists`, "AlreadyExists");
  const record = call.cluster.node(metadata.name);
  return { status: 201, body: record && nodeObject(call.cluster, record, call.clock) };
}

function getNode(call: ApiCall): ApiReply {
  const record = found(call);
  if (record === undefined) return notFound("nodes", call.names[0] ?? "");
  const node = nodeObject(call.cluster, record, call.clock);
  return ok(call.asTable ? nodeTable([node], call) : node);
}

function deleteNode(call: ApiCall): ApiReply {
  const record = found(call);
  if (record === undefined) return notFound("nodes", call.names[0] ?? "");
  call.cluster.deleteNode(record);
  return success;
}

export function patchNode(call: NodePatch): ApiReply {
  const record = found(call);
  if (record === undefined) return notFound("nodes", call.names[0] ?? "");
  const node = nodeObject(call.cluster, record, call.clock);
  let patched: unknown;
  try {
    patched = patchOf(call, node);
  } catch (error) {
    if (error instanceof UnfitPatch) return failure(422, error.message);
    throw error;
  }
  if (patched === undefined) return failure(415, `the content type "${call.contentType}" is no kind of patch`);
  const result = writableSchema.safeParse(patched);
  if (!result.success) return failure(422, `the patch does not leave a node: ${result.error.issues[0]?.message ?? ""}`);
  const { metadata, spec } = result.data;
  if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== node.metadata.resourceVersion)
    return failure(409, "the object has been modified; please apply your changes to the latest version and try again");
  const changed: NodeRecord = {
    ...record,
    unschedulable: spec?.unschedulable ?? false,
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    taints: (spec?.taints ?? [])
      .filter(({ key }) => !OWN_TAINTS.has(key))
      .map(({ key, value, effect }) => (value === undefined ? { key, effect } : { key, value, effect })),
  };
  const schedulable = call.cluster.setSchedulable(
    { ...changed, unschedulable: record.unschedulable },
    !changed.unschedulable,
  );
  return ok(nodeObject(call.cluster, schedulable, call.clock));
}

function patchOf({ contentType, body }: NodePatch, node: NodeObject): unknown {
  switch (contentType.split(";")[0]?.trim()) {
    case "application/merge-patch+json":
    case "application/strategic-merge-patch+json":
      return mergePatch(node, body);
    case "application/json-patch+json":
      return jsonPatch(node, body);
    default:
      return undefined;
  }
}

const found = ({ cluster, names }: Pick<ApiCall, "cluster" | "names">): NodeRecord | undefined =>
  cluster.node(names[0] ?? "");

const nodeTable = (nodes: readonly NodeObject[], { cluster, clock }: ApiCall) =>
  table(
    ["Name", "Status", "Roles", "Age", "Version"],
    nodes.map((node) => {
      const record = cluster.node(node.metadata.name);
      const status = record !== undefined && isReady(cluster, record) ? "Ready" : "NotReady";
      const cordoned = record?.unschedulable === true ? ",SchedulingDisabled" : "";
      const version = record?.info.kubeletVersion ?? "";
      const cells = [
        node.metadata.name,
        status + cordoned,
        "<none>",
        age(record?.createdAt ?? 0, clock.realNow()),
        version,
      ];
      return { cells, object: node };
    }),
  );
