import { z } from "zod";
import type { Duration } from "../../kernel/duration.ts";
import type { ServiceDeps } from "../../services/deps.ts";
import { eventsOf, historyOf, stalledInstalls, statsOf } from "../../services/install-history.ts";
import { addTag, removeTag } from "../../services/install-tags.ts";
import {
  changeInstallState,
  changeManyInstallStates,
  getInstall,
  pageInstalls,
  patchInstall,
  registerInstall,
} from "../../services/installs.ts";
import { listOf, many, objectOf, one, pageOf, pageQuery } from "./envelopes.ts";
import * as schemas from "./node-schemas.ts";
import { type AnyRoute, defineRoute } from "./route.ts";

export interface NodeRouteDeps {
  readonly services: ServiceDeps;
  readonly installTimeout: Duration;
}

const TAG = "nodes";
const UNKNOWN = { 404: "There is no such node." };
const nodeAnswer = objectOf(schemas.node);

async function show(services: ServiceDeps, id: string, message: string | null = null) {
  return one(schemas.nodeJson(await getInstall(services, id)), message);
}

const listNodes = ({ services }: NodeRouteDeps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/nodes",
    tag: TAG,
    summary: "Lists nodes, the oldest first.",
    query: z.strictObject({
      state: schemas.installState.optional(),
      group_id: z.string().optional(),
      tag: z.string().toLowerCase().optional(),
      ...pageQuery,
    }),
    answer: listOf(schemas.node),
    async handle({ query: { state, group_id, tag, limit, offset } }) {
      const { installs, total } = await pageInstalls(services, {
        ...(state !== undefined && { state }),
        ...(group_id !== undefined && { groupIds: [group_id] }),
        ...(tag !== undefined && { tag }),
        limit,
        offset,
      });
      return many(installs.map(schemas.nodeJson), total);
    },
  });

const registerNode = ({ services }: NodeRouteDeps) =>
  defineRoute({
    method: "POST",
    path: "/api/v1/nodes",
    tag: TAG,
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
      return show(services, id, "Node registered successfully");
    },
  });

const countNodes = ({ services }: NodeRouteDeps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/nodes/stats",
    tag: TAG,
    summary: "Counts nodes by state.",
    answer: objectOf(
      z.object({
        total: z.int(),
        by_state: z.record(z.string(), z.int()),
        discovered_last_hour: z.int(),
        installing_count: z.int(),
      }),
    ),
    async handle() {
      const { total, byState, discoveredLastHour, installing } = await statsOf(services);
      return one({
        total,
        by_state: byState,
        discovered_last_hour: discoveredLastHour,
        installing_count: installing,
      });
    },
  });

const listStalledNodes = ({ services, installTimeout }: NodeRouteDeps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/nodes/stalled",
    tag: TAG,
    summary: "Lists nodes that have been installing for longer than an attempt may take, the longest first.",
    query: z.strictObject(pageQuery),
    answer: listOf(schemas.node),
    async handle({ query }) {
      const { installs, total } = await stalledInstalls(services, installTimeout, query);
      return many(installs.map(schemas.nodeJson), total);
    },
  });

const changeManyStates = ({ services }: NodeRouteDeps) =>
  defineRoute({
    method: "POST",
    path: "/api/v1/nodes/bulk/change-state",
    tag: TAG,
    summary: "Takes many nodes to a state, each on its own.",
    body: z.strictObject({
      node_ids: z.array(z.string()).min(1).max(1_000),
      new_state: schemas.installState,
      comment: schemas.comment,
    }),
    example: { node_ids: ["m-02005e100001"], new_state: "pending" },
    answer: objectOf(
      z.object({
        updated: z.int(),
        failed: z.int(),
        errors: z.array(z.object({ node_id: z.string(), error: z.string() })),
      }),
    ),
    async handle({ body: { node_ids, new_state, comment }, caller }) {
      const change = { state: new_state, comment: comment ?? "" };
      const results = await changeManyInstallStates(services, caller, node_ids, change);
      const errors = results.flatMap(({ id, error }) => (error === undefined ? [] : [{ node_id: id, error }]));
      return one({ updated: results.length - errors.length, failed: errors.length, errors });
    },
  });

const showNode = ({ services }: NodeRouteDeps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/nodes/{id}",
    tag: TAG,
    summary: "Shows a node.",
    params: schemas.nodeId,
    errors: UNKNOWN,
    answer: nodeAnswer,
    handle: ({ params: { id } }) => show(services, id),
  });

const patchNode = ({ services }: NodeRouteDeps) =>
  defineRoute({
    method: "PATCH",
    path: "/api/v1/nodes/{id}",
    tag: TAG,
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
      return show(services, id, "Node updated successfully");
    },
  });

const retireNode = ({ services }: NodeRouteDeps) =>
  defineRoute({
    method: "DELETE",
    path: "/api/v1/nodes/{id}",
    tag: TAG,
    summary: "Retires a node. Its record and its history stay.",
    params: schemas.nodeId,
    errors: { ...UNKNOWN, 400: "It is retired already, or a job works on its machine." },
    answer: nodeAnswer,
    async handle({ params: { id }, caller }) {
      await changeInstallState(services, caller, id, { state: "retired", comment: "", force: false });
      return show(services, id, "Node retired");
    },
  });

const changeState = ({ services }: NodeRouteDeps) =>
  defineRoute({
    method: "PATCH",
    path: "/api/v1/nodes/{id}/state",
    tag: TAG,
    summary: "Takes a node to another state.",
    params: schemas.nodeId,
    body: schemas.stateTransition,
    example: { state: "pending", comment: "racked and cabled" },
    errors: {
      404: "There is no such node, no such workflow, or no machine with the id of the replacement.",
      400: "The transition is not possible, and the text ends with those that are; or a job works on the machine, or the replacement cannot take its place.",
    },
    answer: nodeAnswer,
    async handle({ params: { id }, body, caller }) {
      const changed = await changeInstallState(services, caller, id, {
        state: body.state,
        comment: body.comment ?? "",
        force: body.force,
        replacementId: body.replacement_id,
        workflowId: body.workflow_id,
      });
      return one(schemas.nodeJson(changed), `Node transitioned to ${body.state}`);
    },
  });

const listHistory = ({ services }: NodeRouteDeps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/nodes/{id}/history",
    tag: TAG,
    summary: "Lists the transitions of a node, newest first.",
    params: schemas.nodeId,
    query: z.strictObject({
      limit: z.coerce.number().int().min(1).max(200).default(50),
      offset: z.coerce.number().int().min(0).default(0),
    }),
    errors: UNKNOWN,
    answer: pageOf(schemas.transition),
    async handle({ params: { id }, query }) {
      const { transitions, total } = await historyOf(services, id, query);
      return { data: transitions.map(schemas.transitionJson), total };
    },
  });

const listEvents = ({ services }: NodeRouteDeps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/nodes/{id}/events",
    tag: TAG,
    summary: "Lists everything that happened to a node, newest first.",
    params: schemas.nodeId,
    query: z.strictObject({
      limit: z.coerce.number().int().min(1).max(500).default(50),
      offset: z.coerce.number().int().min(0).default(0),
      event_type: z.string().optional(),
    }),
    errors: UNKNOWN,
    answer: pageOf(schemas.event),
    async handle({ params: { id }, query: { limit, offset, event_type } }) {
      const { events, total } = await eventsOf(services, id, { limit, offset, type: event_type });
      return { data: events.map(schemas.eventJson), total };
    },
  });

const tagNode = ({ services }: NodeRouteDeps) =>
  defineRoute({
    method: "POST",
    path: "/api/v1/nodes/{id}/tags",
    tag: TAG,
    summary: "Adds a tag, in lower case.",
    params: schemas.nodeId,
    body: z.strictObject({ tag: schemas.tag }),
    example: { tag: "gpu" },
    errors: { ...UNKNOWN, 400: "It has as many tags as a node may have.", 409: "It has this tag." },
    answer: nodeAnswer,
    async handle({ params: { id }, body: { tag }, caller }) {
      await addTag(services, caller, id, tag);
      return one(schemas.nodeJson(await getInstall(services, id)), "Tag added");
    },
  });

const untagNode = ({ services }: NodeRouteDeps) =>
  defineRoute({
    method: "DELETE",
    path: "/api/v1/nodes/{id}/tags/{tag}",
    tag: TAG,
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
      return one(schemas.nodeJson(await getInstall(services, id)), "Tag removed");
    },
  });

/** Nodes: machines seen through their installs. */
export const nodeRoutes = (deps: NodeRouteDeps): AnyRoute[] =>
  [
    listNodes,
    registerNode,
    countNodes,
    listStalledNodes,
    changeManyStates,
    showNode,
    patchNode,
    retireNode,
    changeState,
    listHistory,
    listEvents,
    tagNode,
    untagNode,
  ].map((route) => route(deps));
