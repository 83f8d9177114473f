import { minutes } from "../../../kernel/time/duration.ts";
import { agentTask } from "./agent-task.ts";

/** Takes the work off the node. Where no agent ever enrolled there is nothing that it could have put there. */
export const drainNode = agentTask({
  kind: "drain_node",
  taskType: "node.drain",
  failure: "drain_failed",
  withoutAgent: "done",
  timeout: minutes(120),
});

export const cleanupStorage = agentTask({
  kind: "cleanup_storage",
  taskType: "node.cleanup_storage",
  failure: "cleanup_failed",
  withoutAgent: "fail",
  timeout: minutes(240),
});

export const scrubGpu = agentTask({
  kind: "scrub_gpu",
  taskType: "node.scrub_gpu",
  failure: "cleanup_failed",
  withoutAgent: "done",
});

/** Nobody else can say that the node is clean. */
export const validateCleanNode = agentTask({
  kind: "validate_clean_node",
  taskType: "node.validate_clean",
  failure: "validation_failed",
  withoutAgent: "fail",
});
