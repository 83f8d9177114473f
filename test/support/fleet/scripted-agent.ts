import type { JsonObject } from "../../../src/kernel/lifecycle.ts";
import type { FleetServer } from "./fleet-server.ts";

const PROOFS: Readonly<Record<string, JsonObject>> = {
  "node.drain": { drained: true },
  "node.cleanup_storage": { devices: [{ name: "nvme0n1", wiped: true }] },
  "node.scrub_gpu": { scrubbed: true },
  "node.validate_clean": { clean: true, findings: [] },
  "node.uninstall": { uninstalled: true },
};

interface Task {
  readonly task_id: string;
  readonly task_type: string;
}

/** The agent of one node over the wire, which does what it is asked, unless it is told to fail at it. */
export function startScriptedAgent(it: Pick<FleetServer, "call">, nodeId: string, bearer: string) {
  const done: string[] = [];
  const failing = new Map<string, string>();
  const stop = new AbortController();
  const once = async (): Promise<boolean> => {
    const { status, body } = await it.call<{ task: Task | null }>("GET", `${nodeId}/tasks/wait?wait_seconds=5`, {
      bearer,
      signal: stop.signal,
    });
    if (status === 401 || status === 403) return false;
    const task = status === 200 ? body.task : null;
    if (task === null) return true;
    const why = failing.get(task.task_type);
    failing.delete(task.task_type);
    const answer =
      why === undefined
        ? { outcome: "completed", result: PROOFS[task.task_type] ?? {} }
        : { outcome: "failed", message: why };
    await it.call("POST", `${nodeId}/tasks/${task.task_id}/result`, { bearer, body: answer, signal: stop.signal });
    done.push(why === undefined ? task.task_type : `${task.task_type} failed`);
    return task.task_type !== "node.uninstall" || why !== undefined;
  };
  const loop = async () => {
    while (!stop.signal.aborted && (await once()));
  };
  const ended = loop().catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });
  return {
    bearer,
    /** What it was asked, in order. */
    done: done as readonly string[],
    failsNext: (type: string, why: string) => failing.set(type, why),
    async stop() {
      stop.abort();
      await ended;
    },
  };
}
export type ScriptedAgent = ReturnType<typeof startScriptedAgent>;
