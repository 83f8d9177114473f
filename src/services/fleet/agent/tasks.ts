import { AppError } from "../../../kernel/errors.ts";
import { type JsonObject, sameJson } from "../../../kernel/lifecycle.ts";
import type { Duration } from "../../../kernel/time/duration.ts";
import { type FleetTask, isLive } from "../../../lifecycles/fleet-task/fleet-task.ts";
import { findOpenTasks, fleetTaskStore } from "../../../store/fleet/tasks.ts";
import { lockThings } from "../../../store/lifecycle/locks.ts";
import { applyVerb } from "../../../store/lifecycle/verbs.ts";
import { retryOnConflict, type Transaction } from "../../../store/postgres/database.ts";
import { findParked } from "../../../store/restore/parked.ts";
import { nowOf, type ServiceDeps } from "../../call/deps.ts";

const KIND = fleetTaskStore.lifecycle.kind;

export interface AgentCall {
  readonly nodeId: string;
  readonly address: string | null;
}

/** One queued task of the node, which from now on is the agent's alone; null when there is none. Of two that race each gets another one. */
export async function claimTask(
  deps: ServiceDeps,
  { nodeId, address }: AgentCall,
  { claim, lease }: { readonly claim: string | null; readonly lease: Duration },
): Promise<FleetTask | null> {
  const open = await findOpenTasks(deps.db, nodeId);
  const now = nowOf(deps);
  // The answer to this very claim was lost.
  const claimed = open.find((task) => claim !== null && task.facts.claim === claim && isLive(task, now));
  if (claimed) return claimed;
  const queued = open.filter((task) => task.state.name === "queued" && isLive(task, now));
  const parked = await findParked(
    deps.db,
    queued.map(({ id }) => ({ kind: KIND, id })),
  );
  for (const { id } of queued.filter((task) => !parked.some((one) => one.id === task.id))) {
    const taken = await retryOnConflict(() =>
      deps.db.transaction(async (tx) => {
        const task = await lockTask(tx, id);
        const at = nowOf(deps);
        if (task?.state.name !== "queued" || !isLive(task, at)) return null;
        const leaseUntil = new Date(at.getTime() + lease).toISOString();
        const data = { at: at.toISOString(), leaseUntil, claim };
        await report(tx, deps, { id, nodeId, address, name: "claimed", data });
        return lockTask(tx, id);
      }),
    );
    if (taken) return taken;
  }
  return null;
}

/** The agent goes on with it, and is waited for as long again. */
export const renewTask = (
  deps: ServiceDeps,
  { nodeId, address }: AgentCall,
  { taskId, lease }: { readonly taskId: string; readonly lease: Duration },
): Promise<Date> =>
  retryOnConflict(() =>
    deps.db.transaction(async (tx) => {
      const task = await ownTask(tx, nodeId, taskId);
      const now = nowOf(deps);
      if (task.state.name !== "dispatched" || !isLive(task, now)) throw isOver(task);
      const leaseUntil = new Date(now.getTime() + lease);
      await report(tx, deps, {
        ...{ id: taskId, nodeId, address, name: "renewed" },
        data: { leaseUntil: leaseUntil.toISOString() },
      });
      return leaseUntil;
    }),
  );

export interface TaskAnswer {
  readonly outcome: "completed" | "failed";
  readonly result: JsonObject;
  readonly message: string;
}

/** What came of a task. The same answer again changes nothing, another one to the same task is refused. */
export const answerTask = (
  deps: ServiceDeps,
  { nodeId, address }: AgentCall,
  { taskId, outcome, result, message }: TaskAnswer & { readonly taskId: string },
): Promise<void> =>
  retryOnConflict(() =>
    deps.db.transaction(async (tx) => {
      const task = await ownTask(tx, nodeId, taskId);
      const { state, facts } = task;
      if (state.name === outcome && sameJson(facts.result ?? {}, result) && facts.message === message) return;
      if (state.name !== "dispatched") throw isOver(task);
      const data = { at: nowOf(deps).toISOString(), result };
      await report(tx, deps, { id: taskId, nodeId, address, name: outcome, message, data });
    }),
  );

const isOver = ({ id, state }: FleetTask): AppError =>
  new AppError("failed_precondition", `task ${id} is ${state.name === "dispatched" ? "past its lease" : state.name}`);

async function lockTask(tx: Transaction, id: string): Promise<FleetTask | undefined> {
  await lockThings(tx, [{ kind: KIND, id }]);
  return (await fleetTaskStore.load(tx, [id])).things[0];
}

async function ownTask(tx: Transaction, nodeId: string, id: string): Promise<FleetTask> {
  const task = await lockTask(tx, id);
  if (task?.nodeId === nodeId) return task;
  throw new AppError("not_found", `node ${nodeId} has no task ${id.slice(0, 80)}`);
}

const report = (
  tx: Transaction,
  { stores }: ServiceDeps,
  said: {
    readonly id: string;
    readonly nodeId: string;
    readonly address: string | null;
    readonly name: string;
    readonly message?: string;
    readonly data: JsonObject;
  },
): Promise<void> => {
  const { nodeId, message, ...verb } = said;
  return applyVerb(tx, stores, {
    ...{ kind: KIND, owner: "agent", actor: `agent of ${nodeId}`, ...verb },
    ...(message !== undefined && message !== "" && { message }),
  });
};
