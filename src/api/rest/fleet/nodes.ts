import { z } from "zod";
import { reachOf } from "../../../kernel/access/scope.ts";
import type { Caller } from "../../../services/call/caller.ts";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import { type Bootstrap, bootstrapOf, reissueBootstrap } from "../../../services/fleet/bootstrap.ts";
import { decommissionNode, previewDecommission, retireNode } from "../../../services/fleet/decommission.ts";
import { actOnNode, FLEET_ACTIONS } from "../../../services/fleet/node-actions.ts";
import {
  abortDrain,
  type NodeVerb,
  quarantineNode,
  reactivateNode,
  recoverNode,
  rollbackRemoval,
} from "../../../services/fleet/node-verbs.ts";
import { type FleetNodeRecord, type FleetNodeView, pageNodes, viewNode } from "../../../services/fleet/nodes.ts";
import { onboardNode } from "../../../services/fleet/onboard.ts";
import { onboardNodes } from "../../../services/fleet/onboard-many.ts";
import { type MoveWord, previewMove } from "../../../services/fleet/previews/move-preview.ts";
import type { RunDeps } from "../../../services/run/deps.ts";
import { manyOf, objectOf, one, pagedListOf, printable, timestamp } from "../envelopes.ts";
import { type AnyRoute, defineRoute } from "../route.ts";
import type { FleetRouteDeps } from "./fleet-routes.ts";
import { batchPreviewRoute, nodeAsked, onboardingPreviewRoute } from "./onboarding-preview.ts";

const TAG = "fleet";
const PATH = "/api/v1/fleet/nodes";
const ONE = `${PATH}/{node}`;
const params = z.object({
  node: z
    .string()
    .max(320)
    .describe("Its id or its host name.")
    .meta({ examples: ["gpu-17"] }),
});
const unknown = { 404: "There is no such node." };
const REFUSED = { 400: "The node, its job or its machine is not in a state for that." };

const nodeJson = (record: FleetNodeRecord) => {
  const { id, site, profile, sku, hostname, mode, ipmiIp, machineId, facts, state, stateSince, createdAt } = record;
  return {
    ...{ id, site, profile, sku, hostname, mode, ipmi_ip: ipmiIp, machine_id: machineId },
    ...{ state: state.name, state_since: stateSince.toISOString() },
    ...{ system_id: facts.systemId, quarantine_reason: facts.quarantineReason },
    ...{ created_at: createdAt.toISOString(), created_by: record.createdBy },
  };
};
const node = z
  .object({
    ...{ id: z.string(), site: z.string(), profile: z.string(), sku: z.string(), hostname: z.string() },
    ...{ mode: z.enum(["maas", "manual"]), ipmi_ip: z.string().nullable(), machine_id: z.string() },
    ...{ state: z.string(), state_since: timestamp, system_id: z.string().nullable() },
    ...{ quarantine_reason: z.string().nullable(), created_at: timestamp, created_by: z.string() },
  })
  .meta({ id: "FleetNode" });

const detailJson = ({ node: record, job, maas, next, agent: who }: FleetNodeView) => ({
  ...nodeJson(record),
  job: job && {
    ...{ run_id: job.runId, type: job.type, mode: job.mode, state: job.state, stage: job.stage, round: job.round },
    ...{ attempt: job.attempt, stage_retries: job.stageRetries, failure_class: job.failureClass },
    ...{ message: job.message, started_by: job.startedBy, created_at: job.createdAt.toISOString() },
    finished_at: job.finishedAt?.toISOString() ?? null,
  },
  maas: maas && { state: maas.observed, status_name: maas.statusName, seen_at: maas.seenAt.toISOString() },
  ...{ next_command: next.command, next_why: next.why },
  agent: who && {
    ...{ enrolled_at: who.enrolledAt.toISOString(), seen_at: who.heard?.seenAt.toISOString() ?? null },
    ...{ health: who.heard?.health ?? null, message: who.heard?.message ?? "", version: who.heard?.agentVersion ?? "" },
  },
});
const job = z
  .object({
    ...{ run_id: z.string(), type: z.enum(["ONBOARD", "DECOMMISSION"]), mode: z.string(), state: z.string() },
    ...{ stage: z.string(), round: z.int(), attempt: z.int(), stage_retries: z.int(), failure_class: z.string() },
    ...{ message: z.string(), started_by: z.string(), created_at: timestamp, finished_at: timestamp.nullable() },
  })
  .meta({ id: "FleetJob" });
const observation = z
  .object({ state: z.string(), status_name: z.string(), seen_at: timestamp })
  .meta({ id: "FleetMaasObservation" });
const agent = z
  .object({
    ...{ enrolled_at: timestamp, seen_at: timestamp.nullable().describe("When it called last.") },
    ...{ health: z.enum(["healthy", "unhealthy"]).nullable(), message: z.string(), version: z.string() },
  })
  .meta({ id: "FleetAgent" });
const detail = z
  .object({
    ...node.shape,
    job: job.nullable(),
    maas: observation.nullable(),
    next_command: z.string(),
    next_why: z.string(),
    agent: agent.nullable().describe("null: none has enrolled."),
  })
  .meta({ id: "FleetNodeDetail" });

const bootstrapJson = ({ command, expiresAt }: Bootstrap) => ({ command, expires_at: expiresAt.toISOString() });
const bootstrap = z
  .object({
    command: z
      .string()
      .describe("One line that the owner of the host runs on it. It holds a token: treat it as a password."),
    expires_at: timestamp,
  })
  .meta({ id: "FleetBootstrap" });

const requestId = z.string().max(128).describe("Such as a UUID; the same again for the same request.");
const comment = printable(1_024).default("");

const newNode = z.strictObject({
  ...{ request_id: requestId, ...nodeAsked },
  bmc_password: z.string().default("").describe("Kept encrypted with the machine; no call returns it."),
});
type NewNode = Omit<z.infer<typeof newNode>, "request_id">;
const askedOf = ({ ipmi_ip, bmc_username, bmc_password, ...rest }: NewNode) => ({
  ...{ ...rest, ipmiIp: ipmi_ip, bmcUsername: bmc_username, bmcPassword: bmc_password },
});

const leaving = {
  mode: z.enum(["soft_reset", "reimage", "full_decommission", "storage_cleanup"]),
  agent_gone: z.boolean().default(false).describe("The agent is not asked; where MAAS erases the disks."),
  lift_quarantine: z.boolean().default(false).describe("Once the node is validated."),
};
const howOf = (how: { readonly mode: string; readonly agent_gone: boolean; readonly lift_quarantine: boolean }) => ({
  ...{ mode: how.mode, agentGone: how.agent_gone, liftQuarantine: how.lift_quarantine },
});

const shown = async (deps: ServiceDeps, name: string) => one(detailJson(await viewNode(deps, name)));

/** The nodes themselves. Those that start jobs are there where runs are. */
export const nodeRoutes = (deps: FleetRouteDeps): AnyRoute[] => [
  ...readingRoutes(deps),
  ...movingRoutes(deps),
  ...(deps.runs ? jobRoutes({ ...deps.services, ...deps.runs }) : []),
];

const readingRoutes = ({ services }: FleetRouteDeps): AnyRoute[] => [
  defineRoute({
    ...{ method: "GET", path: PATH, tag: TAG, summary: "Lists nodes, with the coarse words of their states." },
    query: z.strictObject({
      page_size: z.coerce.number().int().min(0).max(1_000).default(0),
      page_token: z.string().max(8_192).default(""),
      filter: z.string().max(8_192).default("").describe("Such as `state=quarantined AND site=lab`."),
      order_by: z.string().max(1_024).default("").describe("Such as `site, hostname`."),
      with_total: z.stringbool().default(false),
      with_deleted: z.stringbool().default(false).describe("Also nodes that were removed."),
    }),
    answer: pagedListOf(node),
    handle: async ({ query, caller }) =>
      manyOf(
        await pageNodes(
          services,
          {
            ...{
              filter: query.filter,
              orderBy: query.order_by,
              pageSize: query.page_size,
              pageToken: query.page_token,
            },
            ...{ withTotal: query.with_total, withDeleted: query.with_deleted, reach: reachOf(caller.scope) },
          },
          nodeJson,
        ),
        (json) => json,
      ),
  }),
  defineRoute({
    ...{ method: "GET", path: ONE, tag: TAG, summary: "Shows a node, its latest job and what to do next.", params },
    errors: unknown,
    answer: objectOf(detail),
    handle: ({ params: { node: name } }) => shown(services, name),
  }),
];

/** One verb that moves a node by hand, and what it would do. */
const verb = (
  { services }: FleetRouteDeps,
  word: MoveWord,
  summary: string,
  act: (deps: ServiceDeps, caller: Caller, input: NodeVerb) => Promise<void>,
): AnyRoute[] => [
  defineRoute({
    ...{ method: "POST", path: `${ONE}/${word}`, tag: TAG, summary, params },
    body: z.strictObject({ comment }),
    errors: { ...unknown, ...REFUSED },
    example: { comment: "fan 3 was replaced" },
    answer: objectOf(detail),
    handle: async ({ params: { node: name }, body, caller }) => {
      await act(services, caller, { node: name, comment: body.comment });
      return shown(services, name);
    },
  }),
  defineRoute({
    ...{ method: "POST", path: `${ONE}/${word}/preview`, tag: TAG, params },
    summary: `What ${word} would do as things are now. Writes nothing.`,
    body: z.strictObject({ comment }),
    errors: { ...unknown, ...REFUSED },
    example: { comment: "fan 3 was replaced" },
    answer: objectOf(movePreview),
    handle: async ({ params: { node: name }, body }) => {
      const { node: now, to, notes } = await previewMove(services, { node: name, move: word, comment: body.comment });
      return one({ node: nodeJson(now), to_state: to, notes: [...notes] });
    },
  }),
];
const movePreview = z
  .object({
    node,
    to_state: z.string().describe("The present one where nothing would change."),
    notes: z.array(z.string()).describe("What else would happen, or why nothing would."),
  })
  .meta({ id: "FleetMovePreview" });

const movingRoutes = (deps: FleetRouteDeps): AnyRoute[] => [
  defineRoute({
    ...{
      method: "POST",
      path: `${ONE}/bootstrap`,
      tag: TAG,
      summary: "Another bootstrap command for a manual node.",
      params,
    },
    body: z.strictObject({}),
    errors: { ...unknown, ...REFUSED },
    example: {},
    answer: objectOf(bootstrap),
    handle: async ({ params: { node: name }, caller }) =>
      one(bootstrapJson(await reissueBootstrap(deps.services, caller, name))),
  }),
  ...verb(deps, "quarantine", "Keeps a node from being scheduled on. The comment is required.", quarantineNode),
  ...verb(deps, "recover", "Lifts the quarantine of a node that is healthy again.", recoverNode),
  ...verb(deps, "reactivate", "Takes a retired node back into the fleet.", reactivateNode),
  ...verb(deps, "drain-abort", "Ends a drain short of retirement.", abortDrain),
  ...verb(deps, "remove-rollback", "Ends a removal: the node is retired again.", rollbackRemoval),
];

const decommissionPreview = z
  .object({
    stages: z.array(z.object({ stage: z.string(), skipped: z.string().describe("Why; empty: it is not.") })),
    allocations: z.array(z.string()),
  })
  .meta({ id: "FleetDecommissionPreview" });

const jobRoutes = (deps: RunDeps): AnyRoute[] => [
  onboardingPreviewRoute(deps),
  defineRoute({
    ...{ method: "POST", path: PATH, tag: TAG, summary: "Puts a node on record and starts its onboarding." },
    body: newNode,
    errors: { ...REFUSED, 409: "A node has the host name, the address or the machine." },
    example: {
      ...{ request_id: "0b7f0c52-6a4e-4d0e-9c1f-3f6d2a1b4c5d", site: "lab", profile: "h100", sku: "gpu8" },
      ...{ hostname: "gpu-17", ipmi_ip: "10.0.0.17" },
    },
    status: 201,
    answer: objectOf(detail.extend({ bootstrap: bootstrap.nullable() }).meta({ id: "OnboardedFleetNode" })),
    handle: async ({ body: { request_id, ...rest }, caller }) => {
      const made = await onboardNode(deps, caller, { ...askedOf(rest), requestId: request_id });
      const bootstrap = bootstrapOf(deps, made);
      const json = { ...detailJson(await viewNode(deps, made.id)), bootstrap: bootstrap && bootstrapJson(bootstrap) };
      return one(json, "Node created successfully");
    },
  }),
  batchRoute(deps),
  batchPreviewRoute(deps),
  defineRoute({
    ...{ method: "POST", path: `${ONE}/actions`, tag: TAG, summary: "Acts on the latest job of a node.", params },
    body: z.strictObject({ action: z.enum(FLEET_ACTIONS), request_id: requestId.default(""), comment }),
    errors: { ...unknown, ...REFUSED, 409: "The request_id was used for another request." },
    example: { action: "retry-stage", request_id: "0b7f0c52-6a4e-4d0e-9c1f-3f6d2a1b4c5d" },
    answer: objectOf(detail),
    handle: async ({ params: { node: name }, body: { request_id, ...body }, caller }) => {
      await actOnNode(deps, caller, { ...body, node: name, requestId: request_id });
      return shown(deps, name);
    },
  }),
  defineRoute({
    ...{ method: "POST", path: `${ONE}/decommission`, tag: TAG, summary: "Starts a decommission.", params },
    body: z.strictObject({
      ...leaving,
      request_id: requestId,
    }),
    errors: { ...unknown, ...REFUSED, 409: "The request_id was used for another request." },
    example: { mode: "storage_cleanup", request_id: "0b7f0c52-6a4e-4d0e-9c1f-3f6d2a1b4c5d" },
    answer: objectOf(detail),
    handle: async ({ params: { node: name }, body: { request_id, ...how }, caller }) => {
      await decommissionNode(deps, caller, { node: name, ...howOf(how), requestId: request_id });
      return shown(deps, name);
    },
  }),
  defineRoute({
    ...{ method: "POST", path: `${ONE}/decommission/preview`, tag: TAG, params },
    summary: "What a decommission would come through as things are now.",
    body: z.strictObject(leaving),
    errors: { ...unknown, ...REFUSED },
    example: { mode: "full_decommission" },
    answer: objectOf(decommissionPreview),
    handle: async ({ params: { node: name }, body }) =>
      one(await previewDecommission(deps, { node: name, ...howOf(body) })),
  }),
  defineRoute({
    ...{ method: "POST", path: `${ONE}/retire/preview`, tag: TAG, params },
    summary: "What a retirement would come through as things are now.",
    body: z.strictObject({}),
    errors: { ...unknown, ...REFUSED },
    example: {},
    answer: objectOf(decommissionPreview),
    handle: async ({ params: { node: name } }) => one(await previewDecommission(deps, { node: name, mode: "retire" })),
  }),
  defineRoute({
    ...{
      method: "POST",
      path: `${ONE}/retire`,
      tag: TAG,
      summary: "Drains a node and takes it out of scheduling.",
      params,
    },
    body: z.strictObject({ request_id: requestId, comment }),
    errors: { ...unknown, ...REFUSED, 409: "The request_id was used for another request." },
    example: { request_id: "0b7f0c52-6a4e-4d0e-9c1f-3f6d2a1b4c5d" },
    answer: objectOf(detail),
    handle: async ({ params: { node: name }, body, caller }) => {
      await retireNode(deps, caller, { node: name, requestId: body.request_id, comment: body.comment });
      return shown(deps, name);
    },
  }),
];

const batchRoute = (deps: RunDeps): AnyRoute =>
  defineRoute({
    ...{ method: "POST", path: "/api/v1/fleet/batches", tag: TAG, summary: "Onboards many nodes, some at a time." },
    body: z.strictObject({
      request_id: requestId,
      nodes: z
        .array(newNode.omit({ request_id: true }))
        .min(1)
        .max(1_000),
    }),
    errors: { ...REFUSED, 409: "The request_id was used for another request." },
    example: {
      request_id: "0b7f0c52-6a4e-4d0e-9c1f-3f6d2a1b4c5d",
      nodes: [{ site: "lab", profile: "h100", sku: "gpu8", hostname: "gpu-17", ipmi_ip: "10.0.0.17" }],
    },
    status: 201,
    answer: objectOf(z.object({ run_id: z.string() })),
    handle: async ({ body: { request_id, nodes }, caller }) => {
      const { id } = await onboardNodes(deps, caller, { requestId: request_id, nodes: nodes.map(askedOf) });
      return one({ run_id: id }, "Batch started successfully");
    },
  });
