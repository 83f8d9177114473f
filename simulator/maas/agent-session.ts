import { createPublicKey, randomBytes, verify } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { FaultType } from "../faults/fault-rule.ts";

/** What the installed system was told by its user data. */
export interface AgentOrders {
  readonly server: string;
  readonly node: string;
  readonly token: string;
}

/** What the agent keeps on its disk. */
export interface AgentIdentity {
  readonly node: string;
  readonly server: string;
  readonly bearer: string;
  readonly publicKey: string;
}

export interface AgentSession {
  readonly orders: AgentOrders;
  /** As it is on the disk; undefined: it has not enrolled. */
  readonly identity: AgentIdentity | undefined;
  readonly keep: (identity: AgentIdentity) => void;
  readonly goesWrong: (fault: FaultType) => boolean;
  /** How long a task takes, in real time. */
  readonly taskMs: number;
  readonly log: (line: string) => void;
  readonly signal: AbortSignal;
}

interface Task {
  readonly task_id: string;
  readonly node_id: string;
  readonly task_type: string;
  readonly expires_at: string;
}

const AGAIN_MS = 500;
const WAIT_SECONDS = 10;
const SAYS_HEALTH_EVERY_MS = 30_000;

/** What a healthy server with nothing on it answers. */
const RESULTS: Readonly<Record<string, object>> = {
  "node.drain": { drained: true },
  "node.cleanup_storage": { devices: [{ device: "/dev/nvme0n1", wiped: true }] },
  "node.scrub_gpu": { scrubbed: true, gpus: 8 },
  "node.validate_clean": { clean: true, findings: [] },
  "node.uninstall": { uninstalled: true },
  "diag.health_probe": { health: "healthy" },
};

/** uninstalled: for good. dead: the process ended in the middle of a task, and whoever supervises it starts it again. */
export type SessionEnd = "uninstalled" | "refused" | "dead" | "stopped";

/** One life of the agent: it enrols where it has not, says that the node is well, and does what it is asked. */
export async function runAgent(session: AgentSession): Promise<SessionEnd> {
  const { signal } = session;
  try {
    const identity = session.identity ?? (await enrol(session));
    return identity === undefined ? "refused" : await serve(session, identity);
  } catch (error) {
    if (signal.aborted) return "stopped";
    throw error;
  }
}

async function enrol(session: AgentSession): Promise<AgentIdentity | undefined> {
  const { orders, keep, log, signal } = session;
  const nonce = randomBytes(16).toString("hex");
  for (;;) {
    const answer = session.goesWrong("agent_never_enrols")
      ? undefined
      : await send(session, orders.server, `${orders.node}/enroll`, { body: { token: orders.token, nonce } });
    if (answer?.status === 200) {
      const { bearer, public_key } = answer.body as { bearer: string; public_key: string };
      const identity = { node: orders.node, server: orders.server, bearer, publicKey: public_key };
      keep(identity);
      return identity;
    }
    if (answer?.status === 401) {
      log(`agent of ${orders.node}: its enrolment is refused`);
      return undefined;
    }
    await pause(AGAIN_MS, undefined, { signal });
  }
}

async function serve(session: AgentSession, identity: AgentIdentity): Promise<SessionEnd> {
  const { signal } = session;
  let saidAt = Number.NEGATIVE_INFINITY;
  for (;;) {
    if (session.goesWrong("agent_silent")) {
      await pause(AGAIN_MS, undefined, { signal });
      continue;
    }
    if (performance.now() - saidAt > SAYS_HEALTH_EVERY_MS) {
      const health = session.goesWrong("agent_unhealthy") ? "unhealthy" : "healthy";
      const body = { health, message: health === "healthy" ? "" : "a GPU has fallen off the bus" };
      const said = await call(session, identity, "heartbeat", { body: { ...body, agent_version: "simulated" } });
      if (isDismissed(said)) return "refused";
      // What goes wrong ends without anybody saying so: it is said again soon.
      if (said?.status === 200 && health === "healthy") saidAt = performance.now();
    }
    const claim = randomBytes(8).toString("hex");
    const answer = await call(session, identity, `tasks/wait?wait_seconds=${WAIT_SECONDS}&claim=${claim}`);
    if (isDismissed(answer)) return "refused";
    const offered = (answer?.body as { task?: { signed: string; signature: string } | null } | undefined)?.task;
    if (offered) {
      const ended = await work(session, identity, offered);
      if (ended !== undefined) return ended;
    } else if (answer?.status !== 200) await pause(AGAIN_MS, undefined, { signal });
  }
}

async function work(
  session: AgentSession,
  identity: AgentIdentity,
  { signed, signature }: { readonly signed: string; readonly signature: string },
): Promise<SessionEnd | undefined> {
  const { log, signal, taskMs } = session;
  const isGenuine = verify(
    null,
    Buffer.from(signed),
    createPublicKey(identity.publicKey),
    Buffer.from(signature, "base64"),
  );
  const task = JSON.parse(signed) as Task;
  const result = RESULTS[task.task_type];
  if (!isGenuine || task.node_id !== identity.node || Date.parse(task.expires_at) < Date.now() || !result) {
    log(`agent of ${identity.node}: refuses a task`);
    return undefined;
  }
  if (session.goesWrong("agent_dies_in_task")) return "dead";
  await pause(taskMs, undefined, { signal });
  const fails = session.goesWrong("agent_fails_task");
  const body = fails
    ? { outcome: "failed", result: {}, message: `${task.task_type} does not work here` }
    : { outcome: "completed", result };
  const times = session.goesWrong("agent_answers_twice") ? 2 : 1;
  for (let sent = 0; sent < times; ) {
    const answer = await call(session, identity, `tasks/${task.task_id}/result`, { body });
    // Anything but trouble on the way is an answer: also that it comes too late.
    if (answer !== undefined && answer.status < 500 && answer.status !== 429) sent += 1;
    else await pause(AGAIN_MS, undefined, { signal });
  }
  return task.task_type === "node.uninstall" && !fails ? "uninstalled" : undefined;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const isDismissed = (answer: Answer | undefined): boolean => answer?.status === 401 || answer?.status === 403;

const call = (
  session: AgentSession,
  { server, node, bearer }: AgentIdentity,
  path: string,
  options: { readonly body?: object } = {},
): Promise<Answer | undefined> => send(session, server, `${node}/${path}`, { ...options, bearer });

/** Undefined: there was no answer. */
async function send(
  { signal }: AgentSession,
  server: string,
  path: string,
  { body, bearer }: { readonly body?: object; readonly bearer?: string },
): Promise<Answer | undefined> {
  try {
    const response = await fetch(`${server.replace(/\/+$/, "")}/internal/v1/nodes/${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: {
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal,
    });
    return { status: response.status, body: await response.json() };
  } catch (error) {
    if (signal.aborted) throw error;
    return undefined;
  }
}
