import { z } from "zod";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { ARCHITECTURES } from "../../services/install/installs.ts";
import {
  bootInputSchema,
  createWorkflow,
  deleteWorkflow,
  getWorkflow,
  OS_FAMILIES,
  pageWorkflows,
  replaceWorkflow,
  stepInputSchema,
  WORKFLOW_BOOT_MODES,
  WORKFLOW_NEXT_STATES,
  type WorkflowRecord,
  workflowBootSchema,
  workflowStepSchema,
} from "../../services/install/workflows.ts";
import { defineCollection } from "./collection.ts";
import { printable, timestamp } from "./envelopes.ts";
import type { AnyRoute } from "./route.ts";

interface Deps {
  readonly services: ServiceDeps;
}

const TAG = "workflows";
const id = z.object({ id: z.string().meta({ examples: ["ubuntu-2404"] }) });
const said = {
  name: printable(100).trim().min(1),
  description: printable(1_024).default(""),
  os_family: z.enum(OS_FAMILIES).default("linux"),
  architecture: z.enum(ARCHITECTURES).default("x86_64"),
  boot_mode: z.enum(WORKFLOW_BOOT_MODES).default("any"),
};
const given = {
  ...said,
  boot: bootInputSchema.optional().describe("May be left out where a step of type boot says it in its config."),
  steps: z.array(stepInputSchema).max(100).default([]),
  next_state: z.enum(WORKFLOW_NEXT_STATES).optional().describe("installed, unless a step says otherwise."),
};
const kept = {
  ...said,
  boot: workflowBootSchema,
  steps: z.array(workflowStepSchema).max(100),
  next_state: z.enum(WORKFLOW_NEXT_STATES),
};
const workflowBody = z.strictObject(given);
const newWorkflow = z.strictObject({
  id: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/)
    .optional(),
  ...given,
});
const workflow = z
  .object({ id: z.string(), ...kept, created_at: timestamp, updated_at: timestamp })
  .meta({ id: "Workflow" });

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

const workflows = defineCollection({
  path: "/api/v1/workflows",
  tag: TAG,
  called: "Workflow",
  id,
  item: workflow,
  json: workflowJson,
});
const BAD_STEPS = "Two steps have the same sequence, or no environment would run the steps.";

/** What is installed over the network. */
export const workflowRoutes = ({ services }: Deps): AnyRoute[] => [
  workflows.list(
    { summary: "Lists workflows by name." },
    { os_family: z.enum(OS_FAMILIES).optional(), architecture: z.enum(ARCHITECTURES).optional() },
    ({ os_family, architecture }) =>
      pageWorkflows(services, { ...(os_family && { osFamily: os_family }), ...(architecture && { architecture }) }),
  ),
  workflows.add(
    {
      summary: "Makes a workflow; without an id it is given one.",
      example: { id: "ubuntu-2404", ...EXAMPLE },
      errors: { 400: BAD_STEPS, 409: "The name or the id is taken." },
    },
    newWorkflow,
    (body, caller) => createWorkflow(services, caller, { id: body.id, ...inputOf(body) }),
  ),
  workflows.show({ summary: "Shows a workflow." }, (workflowId) => getWorkflow(services, workflowId)),
  workflows.change(
    "PUT",
    {
      summary: "Replaces a workflow; what boots from now on gets the new one.",
      example: EXAMPLE,
      errors: { 400: BAD_STEPS, 409: "The name is taken." },
    },
    workflowBody,
    (workflowId, body, caller) => replaceWorkflow(services, caller, workflowId, inputOf(body)),
  ),
  workflows.drop({ summary: "Stops offering a workflow. Nodes that have it keep it." }, (workflowId, caller) =>
    deleteWorkflow(services, caller, workflowId),
  ),
];
