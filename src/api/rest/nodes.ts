import { z } from "zod";
import { reachOf } from "../../kernel/access/scope.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { patchInstall, registerInstall } from "../../services/install/installs.ts";
import { pageNodes } from "../../services/install/node-list.ts";
import { addTag, removeTag } from "../../services/install/tags.ts";
import { manyOf, pagedListOf, pageQuery } from "./envelopes.ts";
import { answerNode, NODES, nodeAnswer, UNKNOWN_NODE } from "./node-answers.ts";
import * as schemas from "./node-schemas.ts";
import { type AnyRoute, defineRoute, inQuery } from "./route.ts";

interface Deps {
  readonly services: ServiceDeps;
}

const listNodes = ({ services }: Deps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/nodes",
    tag: NODES,
    summary:
      "Lists nodes, the oldest first unless order_by says otherwise. What can be filtered and sorted by: docs/reference/filters.md.",
    query: z.strictObject({
      state: schemas.installState.optional(),
      group_id: z.string().optional(),
      tag: z.string().toLowerCase().optional(),
      filter: z.string().default(""),
      order_by: z.string().default(""),
      page_token: z.string().default(""),
      ...pageQuery,
    }),
    answer: pagedListOf(schemas.node),
    async handle({
      caller,
      query: { state, group_id, tag, filter, order_by: orderBy, page_token: pageToken, limit, offset },
    }) {
      const groupIds = group_id === undefined ? undefined : [group_id];
      const page = { pageToken, pageSize: limit, offset, withTotal: true, reach: reachOf(caller.scope) };
      const asked = { state, groupIds, tag, filter, orderBy, ...page };
      return manyOf(await inQuery(pageNodes(services, asked)), schemas.nodeJson);
    },
  });

const registerNode = ({ services }: Deps) =>
  defineRoute({
    method: "POST",
    path: "/api/v1/nodes",
    tag: NODES,
    summary: "Puts a node on record as discovered.",
    body: schemas.newNode,
    example: { mac_address: "02:00:5e:10:00:01", hostname: "rack1-01", boot_mode: "uefi" },
    status: 201,
    errors: { 404: "There is no such group.", 409: "The MAC address belongs to another node." },
    answer: nodeAnswer,
    async handle({ body, caller }) {
      const told = {
        hostname: body.hostname,
        vendor: body.vendor,
        model: body.model,
        serialNumber: body.serial_number,
        systemUuid: body.system_uuid,
      };
      const id = await registerInstall(services, caller, {
        mac: body.mac_address,
        arch: body.arch,
        bootMode: body.boot_mode,
        groupId: body.group_id ?? null,
        facts: Object.fromEntries(Object.entries(told).filter(([, text]) => text !== undefined && text !== null)),
      });
      return answerNode(services, id, "Node registered successfully");
    },
  });

const showNode = ({ services }: Deps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/nodes/{id}",
    tag: NODES,
    summary: "Shows a node.",
    params: schemas.nodeId,
    errors: UNKNOWN_NODE,
    answer: nodeAnswer,
    handle: ({ params: { id } }) => answerNode(services, id),
  });

const patchNode = ({ services }: Deps) =>
  defineRoute({
    method: "PATCH",
    path: "/api/v1/nodes/{id}",
    tag: NODES,
    summary: "Changes what is said of a node; what is left out stays, and null clears.",
    params: schemas.nodeId,
    body: schemas.nodePatch,
    example: { workflow_id: "ubuntu-2404" },
    errors: {
      400: "A run installs the node with the workflow that it has.",
      404: "There is no such node, group or workflow.",
    },
    answer: nodeAnswer,
    async handle({ params: { id }, body, caller }) {
      const told = {
        hostname: body.hostname,
        vendor: body.vendor,
        model: body.model,
        serialNumber: body.serial_number,
        systemUuid: body.system_uuid,
      };
      await patchInstall(services, caller, id, {
        hardware: Object.fromEntries(Object.entries(told).filter(([, text]) => text !== undefined)),
        groupId: body.group_id,
        workflowId: body.workflow_id,
      });
      return answerNode(services, id, "Node updated successfully");
    },
  });

const tagNode = ({ services }: Deps) =>
  defineRoute({
    method: "POST",
    path: "/api/v1/nodes/{id}/tags",
    tag: NODES,
    summary: "Adds a tag, in lower case.",
    params: schemas.nodeId,
    body: z.strictObject({ tag: schemas.tag }),
    example: { tag: "gpu" },
    errors: { ...UNKNOWN_NODE, 400: "It has as many tags as a node may have.", 409: "It has this tag." },
    answer: nodeAnswer,
    async handle({ params: { id }, body: { tag }, caller }) {
      await addTag(services, caller, id, tag);
      return answerNode(services, id, "Tag added");
    },
  });

const untagNode = ({ services }: Deps) =>
  defineRoute({
    method: "DELETE",
    path: "/api/v1/nodes/{id}/tags/{tag}",
    tag: NODES,
    summary: "Takes a tag away.",
    params: schemas.nodeId.extend({
      tag: z
        .string()
        .toLowerCase()
        .meta({ examples: ["gpu"] }),
    }),
    errors: { 404: "There is no such node, or it does not have this tag." },
    answer: nodeAnswer,
    async handle({ params: { id, tag }, caller }) {
      await removeTag(services, caller, id, tag);
      return answerNode(services, id, "Tag removed");
    },
  });

/** Nodes: machines seen through their installs. What is on record of them, and what people say of them. */
export const nodeRoutes = (deps: Deps): AnyRoute[] =>
  [listNodes, registerNode, showNode, patchNode, tagNode, untagNode].map((route) => route(deps));
