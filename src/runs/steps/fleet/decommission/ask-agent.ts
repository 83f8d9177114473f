import type { JsonObject } from "../../../../kernel/lifecycle.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { agentTask } from "../agent-task.ts";
import {
  cleanupStorage as cleanup,
  drainNode as drain,
  scrubGpu as scrub,
  validateCleanNode as validate,
} from "../node-tasks.ts";
import { drainBegun, isRetired, type OnLeaving, removalBegun } from "./on-leaving.ts";

type AgentStep = typeof drain | typeof cleanup | typeof scrub | typeof validate;
type Before<S extends AgentStep> = Parameters<S["before"]>[0] & Pick<OnLeaving, "openAllocations" | "target">;

const RETIRED = { nobody: "the node is retired already" } as const;
const ERASED = { nobody: "the node has no agent to ask, and the release in MAAS erases its disks" } as const;

/** As the kind of step does it, on a node that drains. What an attempt before has proven by retiring the node is not done again. */
function whileDraining<const S extends AgentStep>(step: S, { isErasedLater = false } = {}): S {
  const wrapped: Pick<AgentStep, "parse" | "before" | "act"> = {
    parse: (payload: JsonObject, field: string, timeout?: number) => {
      const { params: _, ...rest } = payload;
      return { ...step.parse(payload, field, timeout), leaves_erased: isErasedBy(rest) };
    },
    async before(context: Before<S>) {
      if (isRetired(context.target)) return RETIRED;
      if (step.kind === "drain_node") await refuseUsed(context);
      const { leaves_erased } = context.payload as JsonObject;
      if (isErasedLater && leaves_erased === true && !(await context.agent.isEnrolled())) return ERASED;
      return step.before(context);
    },
    async act(context: Parameters<S["act"]>[0]) {
      const acted = await step.act(context);
      return {
        ...acted,
        effects: [...(isRetired(context.target) ? [] : [drainBegun(context.target)]), ...(acted?.effects ?? [])],
      };
    },
  };
  return { ...step, ...wrapped };
}

/** MAAS erases the disks of machines that leave it, or that are installed anew. */
const isErasedBy = ({ mode, node_mode }: JsonObject): boolean =>
  node_mode !== "manual" && (mode === "full_decommission" || mode === "reimage");

/** A drain that does not end what others use: they have to be asked first. */
async function refuseUsed({ openAllocations, target }: Pick<OnLeaving, "openAllocations" | "target">): Promise<void> {
  const [used] = await openAllocations();
  if (used)
    throw failedAs(
      "allocation_in_use",
      `node ${target.hostname} is in use by allocation ${used.id} of ${used.tenant}, which is ${used.state}; millwright fleet allocation release ${used.id}`,
      { name: used.id },
    );
}

export const drainNode = whileDraining(drain);
export const cleanupStorage = whileDraining(cleanup, { isErasedLater: true });
export const scrubGpu = whileDraining(scrub);
export const validateCleanNode = whileDraining(validate, { isErasedLater: true });

const uninstall = agentTask({
  kind: "remove_gpuaas_node_record",
  taskType: "node.uninstall",
  failure: "uninstall_failed",
  withoutAgent: "done",
});

/**
 * The node is being removed, and its agent uninstalls itself while it can still answer. An agent that does not answer is gone with the system that
 * the release in MAAS ends; on a manual node nothing else would end it.
 */
export const removeNodeRecord: typeof uninstall = {
  ...uninstall,
  parse: (payload, field) => ({ ...uninstall.parse(payload, field), silent_is_done: payload.node_mode !== "manual" }),
  async act(context) {
    const acted = await uninstall.act(context);
    return { ...acted, effects: [removalBegun(context.target), ...(acted?.effects ?? [])] };
  },
};
