import type { FastifyReply } from "fastify";
import { z } from "zod";
import { AppError } from "../../../kernel/errors.ts";
import { isJsonObject } from "../../../kernel/lifecycle.ts";
import { milliseconds } from "../../../kernel/time/duration.ts";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import type { AgentDesk } from "../../../services/fleet/agent/desk.ts";
import type { SignedTask } from "../../../services/fleet/agent/signing.ts";
import { printable, timestamp } from "../envelopes.ts";
import { type AnyRoute, defineRoute } from "../route.ts";

const TAG = "fleet agents";
const NODE = "/internal/v1/nodes/{id}";
const id = z
  .string()
  .max(63)
  .meta({ examples: ["fn-0123456789abcdef"] });
const node = z.object({ id });
const taskOf = z.object({
  id,
  task_id: z
    .string()
    .max(100)
    .meta({ examples: ["ft-0123456789abcdef"] }),
});
/** What an agent has to say is short. */
const BODY_LIMIT = 64 * 1024;
const MOST_WAIT_SECONDS = 60;

const NOT_ITS_AGENT = { 403: "The bearer token is not that of this node's agent." };
const TOO_MANY = { 429: "Too many calls." };
const errors = { ...NOT_ITS_AGENT, ...TOO_MANY };

const deskOf = ({ agents }: ServiceDeps): AgentDesk => {
  if (agents) return agents;
  throw new AppError("unavailable", "this server has no fleet agents");
};

const enrolment = z.strictObject({
  token: z.string().min(1).max(256).describe("The single-use token of the node."),
  nonce: z
    .string()
    .regex(/^[A-Za-z0-9_-]{16,128}$/)
    .describe(
      "Chosen by the agent at random. The same request again is given the same answer until the bearer is used.",
    ),
});
const enrolled = z
  .object({
    node_id: z.string(),
    bearer: z.string().describe("For all other calls, as `authorization: Bearer`. Shown only here."),
    public_key: z.string().describe("Ed25519, PEM: what tasks are signed with."),
    task_lease_seconds: z.number(),
    longest_wait_seconds: z.number(),
  })
  .meta({ id: "EnrolledAgent" });

const task = z
  .object({
    task_id: z.string(),
    task_type: z.string(),
    params: z.record(z.string(), z.unknown()),
    expires_at: timestamp.describe("Until when it may be begun."),
    signed: z
      .string()
      .describe("JSON with node_id, task_id, task_type, params and expires_at, exactly as it was signed."),
    signature: z.string().describe("Ed25519 over the bytes of `signed`, base64."),
  })
  .meta({ id: "AgentTask" });

const taskJson = ({ taskId, taskType, params, expiresAt, signed, signature }: SignedTask) => ({
  ...{ task_id: taskId, task_type: taskType, params, expires_at: expiresAt, signed, signature },
});

const answer = z.strictObject({
  outcome: z.enum(["completed", "failed"]),
  result: z.record(z.string().max(100), z.unknown()).default({}),
  message: printable(2_048).default(""),
});
const health = z.strictObject({
  health: z.enum(["healthy", "unhealthy"]),
  message: printable(1_024).default(""),
  agent_version: printable(64).default(""),
});
const nothing = z.object({});

/** What the agents of fleet nodes call. Nobody but the agent of a node learns or changes anything of it here. */
export const agentRoutes = (services: ServiceDeps): AnyRoute[] => [
  defineRoute({
    ...{
      method: "POST",
      path: `${NODE}/enroll`,
      tag: TAG,
      summary: "Makes the caller the agent of the node.",
      params: node,
    },
    body: enrolment,
    bodyLimit: BODY_LIMIT,
    errors: { 401: "The token is not one that the node can enrol with now.", ...TOO_MANY },
    example: { token: "mwe_0123456789abcdefghijkl", nonce: "0123456789abcdef" },
    answer: enrolled,
    async handle({ params, body: { token, nonce }, request }) {
      const desk = deskOf(services);
      const { bearer, publicKey, rules } = await desk.enrol({ nodeId: params.id, token, nonce, address: request.ip });
      return {
        ...{ node_id: params.id, bearer, public_key: publicKey },
        task_lease_seconds: rules.taskLease / 1_000,
        longest_wait_seconds: rules.longestWait / 1_000,
      };
    },
  }),
  defineRoute({
    ...{
      method: "GET",
      path: `${NODE}/tasks/wait`,
      tag: TAG,
      summary: "Takes one task, or waits for one.",
      params: node,
    },
    query: z.strictObject({
      wait_seconds: z.coerce.number().min(0).max(MOST_WAIT_SECONDS).default(20),
      claim: z
        .string()
        .regex(/^[A-Za-z0-9_-]{1,64}$/)
        .optional()
        .describe("Chosen by the agent: the same claim again is given the task that it was given before."),
    }),
    errors,
    answer: z.object({ task: task.nullable() }),
    async handle({ params, query, caller, reply }) {
      const options = { claim: query.claim ?? null, waitFor: milliseconds(query.wait_seconds * 1_000) };
      const found = await deskOf(services).wait(caller, params.id, { ...options, signal: untilGone(reply) });
      return { task: found && taskJson(found) };
    },
  }),
  defineRoute({
    ...{
      method: "POST",
      path: `${NODE}/tasks/{task_id}/renew`,
      tag: TAG,
      summary: "Goes on with a task.",
      params: taskOf,
    },
    errors: { ...errors, 400: "The task has ended, or its lease has.", 404: "The node has no such task." },
    answer: z.object({ lease_until: timestamp }),
    async handle({ params, caller }) {
      const until = await deskOf(services).renew(caller, params.id, params.task_id);
      return { lease_until: until.toISOString() };
    },
  }),
  defineRoute({
    ...{
      method: "POST",
      path: `${NODE}/tasks/{task_id}/result`,
      tag: TAG,
      summary: "What came of a task.",
      params: taskOf,
    },
    body: answer,
    bodyLimit: BODY_LIMIT,
    errors: { ...errors, 400: "The task has ended otherwise.", 404: "The node has no such task." },
    example: { outcome: "completed", result: { drained: true }, message: "" },
    answer: nothing,
    async handle({ params, body: { outcome, result, message }, caller }) {
      if (!isJsonObject(result))
        throw new AppError("invalid_argument", "result: must be an object", { field: "result" });
      await deskOf(services).answer(caller, params.id, params.task_id, { outcome, result, message });
      return {};
    },
  }),
  defineRoute({
    ...{ method: "POST", path: `${NODE}/heartbeat`, tag: TAG, summary: "How the node is.", params: node },
    body: health,
    bodyLimit: BODY_LIMIT,
    errors,
    example: { health: "healthy", agent_version: "1.0.0" },
    answer: nothing,
    async handle({ params, body: { health: is, message, agent_version: agentVersion }, caller }) {
      await deskOf(services).heartbeat(caller, { nodeId: params.id, health: is, message, agentVersion });
      return {};
    },
  }),
];

// biome-ignore format: a table is read by its columns
export const AGENT_ROLES = {
  // By the single-use token in its body: whoever calls has nothing else yet.
  "POST /internal/v1/nodes/{id}/enroll":                 "anyone",
  "GET /internal/v1/nodes/{id}/tasks/wait":              ["agent"],
  "POST /internal/v1/nodes/{id}/tasks/{task_id}/renew":  ["agent"],
  "POST /internal/v1/nodes/{id}/tasks/{task_id}/result": ["agent"],
  "POST /internal/v1/nodes/{id}/heartbeat":              ["agent"],
} as const;

/** Nobody is given a task whose connection has gone. */
function untilGone({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  raw.once("close", () => gone.abort());
  return gone.signal;
}
