import { z } from "zod";
import { reachOf } from "../../kernel/access/scope.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import {
  ancestorsOf,
  createGroup,
  type DeviceGroupRecord,
  deleteGroup,
  descendantsOf,
  getGroup,
  pageGroups,
  updateGroup,
} from "../../services/install/device-groups.ts";
import { pageNodes } from "../../services/install/node-list.ts";
import { defineCollection } from "./collection.ts";
import { listOf, many, pageQuery, printable, timestamp } from "./envelopes.ts";
import { node, nodeJson } from "./node-schemas.ts";
import { type AnyRoute, defineRoute } from "./route.ts";

interface Deps {
  readonly services: ServiceDeps;
}

const TAG = "groups";
const id = z.object({ id: z.string() });
const name = printable(100).trim().min(1);
const said = {
  description: printable(1_024).nullable().optional(),
  parent_id: z.string().nullable().optional(),
  default_workflow_id: z.string().nullable().optional(),
  /** Null inherits. */
  auto_provision: z.boolean().nullable().optional(),
  auto_promote: z.boolean().nullable().optional(),
};
const newGroup = z.strictObject({ name, ...said });
const groupPatch = z.strictObject({ name: name.optional(), ...said });

const nullable = z.string().nullable();
const group = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string(),
    parent_id: nullable,
    path: z.string(),
    depth: z.int(),
    default_workflow_id: nullable,
    auto_provision: z.boolean().nullable(),
    auto_promote: z.boolean().nullable(),
    effective_workflow_id: nullable,
    effective_auto_provision: z.boolean(),
    effective_auto_promote: z.boolean(),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: "Group" });

const groupJson = (each: DeviceGroupRecord): z.input<typeof group> => ({
  id: each.id,
  name: each.name,
  description: each.description,
  parent_id: each.parentId,
  path: each.path,
  depth: each.depth,
  default_workflow_id: each.defaultWorkflowId,
  auto_provision: each.autoProvision,
  auto_promote: each.autoPromote,
  effective_workflow_id: each.effectiveWorkflowId,
  effective_auto_provision: each.effectiveAutoProvision,
  effective_auto_promote: each.effectiveAutoPromote,
  created_at: each.createdAt.toISOString(),
  updated_at: each.updatedAt.toISOString(),
});

const groups = defineCollection({
  path: "/api/v1/groups",
  tag: TAG,
  called: "Group",
  id,
  item: group,
  json: groupJson,
});

const addGroup = ({ services }: Deps) =>
  groups.add(
    {
      summary: "Makes a group.",
      example: { name: "gpu", default_workflow_id: "ubuntu-2404", auto_provision: true },
      errors: {
        400: "It would be too deep.",
        404: "There is no such parent or workflow.",
        409: "The name is taken.",
      },
    },
    newGroup,
    (body, caller) =>
      createGroup(services, caller, {
        name: body.name,
        description: body.description ?? "",
        parentId: body.parent_id ?? null,
        defaultWorkflowId: body.default_workflow_id ?? null,
        autoProvision: body.auto_provision ?? null,
        autoPromote: body.auto_promote ?? null,
      }),
  );

const patchGroup = ({ services }: Deps) =>
  groups.change(
    "PATCH",
    {
      summary: "Changes a group; what is left out stays, and null inherits.",
      example: { auto_promote: true },
      errors: {
        400: "It would be below itself, or too deep.",
        404: "There is no such group, parent or workflow.",
        409: "The name is taken.",
      },
    },
    groupPatch,
    (groupId, body, caller) =>
      updateGroup(services, caller, groupId, {
        ...(body.name !== undefined && { name: body.name }),
        ...(body.description !== undefined && { description: body.description ?? "" }),
        ...(body.parent_id !== undefined && { parentId: body.parent_id }),
        ...(body.default_workflow_id !== undefined && { defaultWorkflowId: body.default_workflow_id }),
        ...(body.auto_provision !== undefined && { autoProvision: body.auto_provision }),
        ...(body.auto_promote !== undefined && { autoPromote: body.auto_promote }),
      }),
  );

const listNodesOfGroup = ({ services }: Deps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/groups/{id}/nodes",
    tag: TAG,
    summary: "Lists the nodes of a group.",
    params: id,
    query: z.strictObject({ include_descendants: z.stringbool().default(false), ...pageQuery }),
    errors: { 404: "There is no such group." },
    answer: listOf(node),
    async handle({ params, caller, query: { include_descendants, limit, offset } }) {
      await getGroup(services, params.id);
      const below = include_descendants ? await descendantsOf(services, params.id) : [];
      const groupIds = [params.id, ...below.map((each) => each.id)];
      const asked = {
        groupIds,
        filter: "",
        pageToken: "",
        pageSize: limit,
        offset,
        withTotal: true,
        reach: reachOf(caller.scope),
      };
      const { items, totalSize } = await pageNodes(services, asked);
      return many(items.map(nodeJson), totalSize ?? 0);
    },
  });

/** Groups of devices, nested; what one does not say, the next above says. */
export function groupRoutes(deps: Deps): AnyRoute[] {
  const { services } = deps;
  return [
    groups.list(
      { summary: "Lists groups, parents before their children." },
      { root_only: z.stringbool().optional(), parent_id: z.string().optional() },
      ({ root_only, parent_id }) => {
        const parentId = root_only ? null : parent_id;
        return pageGroups(services, parentId === undefined ? {} : { parentId });
      },
    ),
    addGroup(deps),
    groups.show({ summary: "Shows a group." }, (groupId) => getGroup(services, groupId)),
    patchGroup(deps),
    groups.drop(
      { summary: "Deletes an empty group.", errors: { 400: "Nodes or groups are in it." } },
      (groupId, caller) => deleteGroup(services, caller, groupId),
    ),
    listNodesOfGroup(deps),
    groups.related("ancestors", { summary: "Lists the groups above a group, the outermost first." }, (groupId) =>
      ancestorsOf(services, groupId),
    ),
    groups.related("descendants", { summary: "Lists all groups below a group." }, (groupId) =>
      descendantsOf(services, groupId),
    ),
  ];
}
