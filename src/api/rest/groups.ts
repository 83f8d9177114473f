import { z } from "zod";
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
import { pageInstalls } from "../../services/install/installs.ts";
import { cut, listOf, many, objectOf, one, pageQuery, printable, timestamp } from "./envelopes.ts";
import { node, nodeJson } from "./node-schemas.ts";
import { type AnyRoute, defineRoute } from "./route.ts";

interface Deps {
  readonly services: ServiceDeps;
}

const TAG = "groups";
const UNKNOWN = { 404: "There is no such group." };
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
const groupAnswer = objectOf(group);

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
type Page = Parameters<typeof cut>[1];
const pageOfGroups = (groups: readonly DeviceGroupRecord[], page: Page) =>
  many(cut(groups, page).map(groupJson), groups.length);

const listGroups = ({ services }: Deps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/groups",
    tag: TAG,
    summary: "Lists groups, parents before their children.",
    query: z.strictObject({ root_only: z.stringbool().optional(), parent_id: z.string().optional(), ...pageQuery }),
    answer: listOf(group),
    async handle({ query: { root_only, parent_id, limit, offset } }) {
      const parentId = root_only ? null : parent_id;
      const groups = await pageGroups(services, parentId === undefined ? {} : { parentId });
      return pageOfGroups(groups, { limit, offset });
    },
  });

const addGroup = ({ services }: Deps) =>
  defineRoute({
    method: "POST",
    path: "/api/v1/groups",
    tag: TAG,
    summary: "Makes a group.",
    body: newGroup,
    example: { name: "gpu", default_workflow_id: "ubuntu-2404", auto_provision: true },
    status: 201,
    errors: {
      400: "It would be too deep.",
      404: "There is no such parent or workflow.",
      409: "The name is taken.",
    },
    answer: groupAnswer,
    async handle({ body, caller }) {
      const made = await createGroup(services, caller, {
        name: body.name,
        description: body.description ?? "",
        parentId: body.parent_id ?? null,
        defaultWorkflowId: body.default_workflow_id ?? null,
        autoProvision: body.auto_provision ?? null,
        autoPromote: body.auto_promote ?? null,
      });
      return one(groupJson(made), "Group created successfully");
    },
  });

const showGroup = ({ services }: Deps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/groups/{id}",
    tag: TAG,
    summary: "Shows a group.",
    params: id,
    errors: UNKNOWN,
    answer: groupAnswer,
    handle: async ({ params }) => one(groupJson(await getGroup(services, params.id))),
  });

const patchGroup = ({ services }: Deps) =>
  defineRoute({
    method: "PATCH",
    path: "/api/v1/groups/{id}",
    tag: TAG,
    summary: "Changes a group; what is left out stays, and null inherits.",
    params: id,
    body: groupPatch,
    example: { auto_promote: true },
    errors: {
      400: "It would be below itself, or too deep.",
      404: "There is no such group, parent or workflow.",
      409: "The name is taken.",
    },
    answer: groupAnswer,
    async handle({ params, body, caller }) {
      const changed = await updateGroup(services, caller, params.id, {
        ...(body.name !== undefined && { name: body.name }),
        ...(body.description !== undefined && { description: body.description ?? "" }),
        ...(body.parent_id !== undefined && { parentId: body.parent_id }),
        ...(body.default_workflow_id !== undefined && { defaultWorkflowId: body.default_workflow_id }),
        ...(body.auto_provision !== undefined && { autoProvision: body.auto_provision }),
        ...(body.auto_promote !== undefined && { autoPromote: body.auto_promote }),
      });
      return one(groupJson(changed), "Group updated successfully");
    },
  });

const dropGroup = ({ services }: Deps) =>
  defineRoute({
    method: "DELETE",
    path: "/api/v1/groups/{id}",
    tag: TAG,
    summary: "Deletes an empty group.",
    params: id,
    errors: { ...UNKNOWN, 400: "Nodes or groups are in it." },
    answer: objectOf(z.null()),
    async handle({ params, caller }) {
      await deleteGroup(services, caller, params.id);
      return one(null, "Group deleted successfully");
    },
  });

const listNodesOfGroup = ({ services }: Deps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/groups/{id}/nodes",
    tag: TAG,
    summary: "Lists the nodes of a group.",
    params: id,
    query: z.strictObject({ include_descendants: z.stringbool().default(false), ...pageQuery }),
    errors: UNKNOWN,
    answer: listOf(node),
    async handle({ params, query: { include_descendants, limit, offset } }) {
      await getGroup(services, params.id);
      const below = include_descendants ? await descendantsOf(services, params.id) : [];
      const groupIds = [params.id, ...below.map((each) => each.id)];
      const { installs, total } = await pageInstalls(services, { groupIds, limit, offset });
      return many(installs.map(nodeJson), total);
    },
  });

const listAncestors = ({ services }: Deps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/groups/{id}/ancestors",
    tag: TAG,
    summary: "Lists the groups above a group, the outermost first.",
    params: id,
    query: z.strictObject(pageQuery),
    errors: UNKNOWN,
    answer: listOf(group),
    handle: async ({ params, query }) => pageOfGroups(await ancestorsOf(services, params.id), query),
  });

const listDescendants = ({ services }: Deps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/groups/{id}/descendants",
    tag: TAG,
    summary: "Lists all groups below a group.",
    params: id,
    query: z.strictObject(pageQuery),
    errors: UNKNOWN,
    answer: listOf(group),
    handle: async ({ params, query }) => pageOfGroups(await descendantsOf(services, params.id), query),
  });

/** Groups of devices, nested; what one does not say, the next above says. */
export const groupRoutes = (deps: Deps): AnyRoute[] =>
  [listGroups, addGroup, showGroup, patchGroup, dropGroup, listNodesOfGroup, listAncestors, listDescendants].map(
    (route) => route(deps),
  );
