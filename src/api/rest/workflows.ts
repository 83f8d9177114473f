import { z } from "zod";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { ARCHITECTURES } from "../../services/install/installs.ts";
import {
  createWorkflow,
  deleteWorkflow,
  getWorkflow,
  OS_FAMILIES,
  pageWorkflows,
  replaceWorkflow,
  WORKFLOW_BOOT_MODES,
  WORKFLOW_NEXT_STATES,
  type WorkflowRecord,
  workflowBootSchema,
  workflowStepSchema,
} from "../../services/install/workflows.ts";
import { cut, listOf, many, objectOf, one, pageQuery, printable, timestamp } from "./envelopes.ts";
import { type AnyRoute, defineRoute } from "./route.ts";

interface Deps {
  readonly services: ServiceDeps;
}

const TAG = "workflows";
const UNKNOWN = { 404: "There is no such workflow." };
const id = z.object({ id: z.string().meta({ examples: ["ubuntu-2404"] }) });
const said = {
  name: printable(100).trim().min(1),
  description: printable(1_024).default(""),
  os_family: z.enum(OS_FAMILIES).default("linux"),
  architecture: z.enum(ARCHITECTURES).default("x86_64"),
  boot_mode: z.enum(WORKFLOW_BOOT_MODES).default("any"),
  boot: workflowBootSchema,
  steps: z.array(workflowStepSchema).max(100).default([]),
  next_state: z.enum(WORKFLOW_NEXT_STATES).default("installed"),
};
const workflowBody = z.strictObject(said);
const newWorkflow = z.strictObject({
  id: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/)
    .optional(),
  ...said,
});
const workflow = z
  .object({ id: z.string(), ...said, created_at: timestamp, updated_at: timestamp })
  .meta({ id: "Workflow" });
const workflowAnswer = objectOf(workflow);

const workflowJson = (each: WorkflowRecord) => ({
  id: each.id,
  name: each.name,
  description: each.description,
  os_family: each.osFamily,
  architecture: each.architecture,
  boot_mode: each.bootMode,
  boot: each.boot,
  steps: each.steps,
  next_state: each.nextState,
  created_at: each.createdAt.toISOString(),
  updated_at: each.updatedAt.toISOString(),
});

const EXAMPLE = {
  name: "Ubuntu 24.04",
  boot: {
    method: "kernel",
    kernel_url: "/files/ubuntu-2404/vmlinuz",
    initrd_url: "/files/ubuntu-2404/initrd",
    cmdline: "autoinstall ds=nocloud",
  },
};

const inputOf = (body: z.output<typeof workflowBody>) => ({
  name: body.name,
  description: body.description,
  osFamily: body.os_family,
  architecture: body.architecture,
  bootMode: body.boot_mode,
  boot: body.boot,
  steps: body.steps,
  nextState: body.next_state,
});

const listWorkflows = ({ services }: Deps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/workflows",
    tag: TAG,
    summary: "Lists workflows by name.",
    query: z.strictObject({
      os_family: z.enum(OS_FAMILIES).optional(),
      architecture: z.enum(ARCHITECTURES).optional(),
      ...pageQuery,
    }),
    answer: listOf(workflow),
    async handle({ query: { os_family, architecture, limit, offset } }) {
      const found = await pageWorkflows(services, {
        ...(os_family && { osFamily: os_family }),
        ...(architecture && { architecture }),
      });
      return many(cut(found, { limit, offset }).map(workflowJson), found.length);
    },
  });

const addWorkflow = ({ services }: Deps) =>
  defineRoute({
    method: "POST",
    path: "/api/v1/workflows",
    tag: TAG,
    summary: "Makes a workflow; without an id it is given one.",
    body: newWorkflow,
    example: { id: "ubuntu-2404", ...EXAMPLE },
    status: 201,
    errors: { 400: "Two steps have the same sequence.", 409: "The name or the id is taken." },
    answer: workflowAnswer,
    async handle({ body, caller }) {
      const made = await createWorkflow(services, caller, { id: body.id, ...inputOf(body) });
      return one(workflowJson(made), "Workflow created successfully");
    },
  });

const showWorkflow = ({ services }: Deps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/workflows/{id}",
    tag: TAG,
    summary: "Shows a workflow.",
    params: id,
    errors: UNKNOWN,
    answer: workflowAnswer,
    handle: async ({ params }) => one(workflowJson(await getWorkflow(services, params.id))),
  });

const putWorkflow = ({ services }: Deps) =>
  defineRoute({
    method: "PUT",
    path: "/api/v1/workflows/{id}",
    tag: TAG,
    summary: "Replaces a workflow; what boots from now on gets the new one.",
    params: id,
    body: workflowBody,
    example: EXAMPLE,
    errors: { ...UNKNOWN, 400: "Two steps have the same sequence.", 409: "The name is taken." },
    answer: workflowAnswer,
    async handle({ params, body, caller }) {
      const changed = await replaceWorkflow(services, caller, params.id, inputOf(body));
      return one(workflowJson(changed), "Workflow updated successfully");
    },
  });

const dropWorkflow = ({ services }: Deps) =>
  defineRoute({
    method: "DELETE",
    path: "/api/v1/workflows/{id}",
    tag: TAG,
    summary: "Stops offering a workflow. Nodes that have it keep it.",
    params: id,
    errors: UNKNOWN,
    answer: objectOf(z.null()),
    async handle({ params, caller }) {
      await deleteWorkflow(services, caller, params.id);
      return one(null, "Workflow deleted successfully");
    },
  });

/** What is installed over the network. */
export const workflowRoutes = (deps: Deps): AnyRoute[] =>
  [listWorkflows, addWorkflow, showWorkflow, putWorkflow, dropWorkflow].map((route) => route(deps));
