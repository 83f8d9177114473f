import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { AgentDisk } from "./agent-disk.ts";
import type { AgentConfig } from "./config.ts";
import { doTask, probeHealth } from "./do-task.ts";
import { type AgentIdentity, type OfferedTask, Refused, type ServerCalls } from "./server-calls.ts";
import { type TrustedTask, trustTask } from "./trusted-task.ts";

export interface AgentParts {
  readonly calls: ServerCalls;
  readonly disk: AgentDisk;
  readonly config: AgentConfig;
  /** The single-use token, if the agent still has to enrol. */
  readonly readToken: () => string;
  readonly version: string;
  readonly log: (line: string) => void;
  readonly signal: AbortSignal;
}

const SAYS_HEALTH_EVERY_MS = 30_000;
const WAIT_SECONDS = 20;
const RENEWS_EVERY_MS = 60_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/** uninstalled: the server asked for it. stopped: whoever started the agent ended it. */
export type AgentEnd = "uninstalled" | "stopped";

/**
 * Enrols if it has to, says how the node is, and does one task after the other, until it is uninstalled or stopped. A server that
 * does not answer is asked again for ever; one that refuses the agent ends it.
 *
 * @throws Refused
 */
export async function runAgent(parts: AgentParts): Promise<AgentEnd> {
  const { signal, disk, log } = parts;
  try {
    const identity = disk.identity() ?? (await enrol(parts));
    log(`agent of node ${identity.node} calls ${identity.server}`);
    return await serve(parts, identity);
  } catch (error) {
    if (signal.aborted) return "stopped";
    throw error;
  }
}

async function enrol({ calls, disk, readToken, signal, log }: AgentParts): Promise<AgentIdentity> {
  const token = readToken();
  const nonce = disk.nonce(() => randomBytes(24).toString("hex"));
  const identity = await untilAnswered(() => calls.enrol(token, nonce, signal), { log, signal });
  disk.keepIdentity(identity);
  return identity;
}

async function serve(parts: AgentParts, identity: AgentIdentity): Promise<AgentEnd> {
  const { calls, config, version, log, signal } = parts;
  for (let saidAt = Number.NEGATIVE_INFINITY; ; ) {
    if (performance.now() - saidAt >= SAYS_HEALTH_EVERY_MS) {
      const said = { ...(await probeHealth(config, signal)), agent_version: version };
      await untilAnswered(() => calls.sayHealth(identity, said, signal), { log, signal });
      saidAt = performance.now();
    }
    const begunAt = performance.now();
    const claim = { claim: randomBytes(12).toString("hex"), seconds: WAIT_SECONDS };
    const offered = await untilAnswered(() => calls.wait(identity, claim, signal), { log, signal });
    if (offered && (await take(parts, identity, offered)) === "uninstalled") return "uninstalled";
    // A server that answers at once that there is nothing is not asked without end.
    if (!offered && performance.now() - begunAt < FIRST_PAUSE_MS) await pause(FIRST_PAUSE_MS, undefined, { signal });
  }
}

async function take(
  parts: AgentParts,
  identity: AgentIdentity,
  offered: OfferedTask,
): Promise<"uninstalled" | undefined> {
  const { disk, log, signal, calls, config } = parts;
  const begun = disk.begun();
  const task = trustTask(offered, {
    ...{ node: identity.node, publicKey: identity.publicKey, now: new Date() },
    wasBegun: (id) => begun.has(id),
  });
  if ("refused" in task) {
    log(`a task is refused: ${task.refused}`);
    await pause(FIRST_PAUSE_MS, undefined, { signal });
    return undefined;
  }
  disk.noteBegun(task.id);
  log(`task ${task.id} (${task.type}) begins`);
  const outcome = await whileRenewing(parts, identity, task, () => doTask(config, task, signal));
  log(`task ${task.id} (${task.type}) is ${outcome.outcome}${outcome.message === "" ? "" : `: ${outcome.message}`}`);
  try {
    await untilAnswered(() => calls.answer(identity, task.id, outcome, signal), { log, signal });
  } catch (error) {
    // Somebody else has decided about the task meanwhile, since its lease ran out.
    if (!(error instanceof Refused) || isNoAgent(error)) throw error;
    log(error.message);
    return undefined;
  }
  if (task.type !== "node.uninstall" || outcome.outcome !== "completed") return undefined;
  disk.forget();
  return "uninstalled";
}

/** The server waits for as long as the agent says that it goes on. */
async function whileRenewing<T>(
  { calls, log, signal }: AgentParts,
  identity: AgentIdentity,
  { id }: TrustedTask,
  work: () => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  const renewing = (async () => {
    for (;;) {
      await pause(RENEWS_EVERY_MS, undefined, { signal: until });
      await calls.renew(identity, id, until).catch((error: unknown) => {
        if (!until.aborted) log(`the lease of task ${id} could not be renewed: ${String(error)}`);
      });
    }
  })().catch(() => {});
  try {
    return await work();
  } finally {
    over.abort();
    await renewing;
  }
}

const isNoAgent = ({ status }: Refused): boolean => status === 401 || status === 403;

/** Whatever keeps the answer from coming passes; a refusal does not. */
async function untilAnswered<T>(
  call: () => Promise<T>,
  { log, signal }: Pick<AgentParts, "log" | "signal">,
): Promise<T> {
  for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(wait * 2, LONGEST_PAUSE_MS)) {
    try {
      return await call();
    } catch (error) {
      if (signal.aborted || error instanceof Refused) throw error;
      log(`${error instanceof Error ? error.message : String(error)}; trying again`);
    }
    await pause(wait * (0.5 + Math.random() / 2), undefined, { signal });
  }
}
