import type { Duration } from "../../../kernel/time/duration.ts";
import type { FleetTask, FleetTaskType } from "../../../lifecycles/fleet-task/fleet-task.ts";

/** What was heard last of the agent. */
export interface LastHeard {
  readonly seenAt: Date;
  /** What it said last of the node; null: nothing since it enrolled. */
  readonly health: "healthy" | "unhealthy" | null;
  readonly message: string;
}

/** The agent of the node, as far as steps may know it. They ask it for something by creating a task. */
export interface AgentOfNode {
  /** Whether somebody has enrolled as the agent of the node, and was not dismissed. */
  isEnrolled(): Promise<boolean>;
  /** Null: nothing since it enrolled. */
  lastHeard(): Promise<LastHeard | null>;
  /** Null: there is no such task. */
  findTask(id: string): Promise<FleetTask | null>;
  /** A task of the node that is still going to end by itself; the oldest, should there be more. */
  findLiveTask(type: FleetTaskType): Promise<FleetTask | null>;
  /** Nobody speaks for the node any more: its bearer token is refused from now on. Doing it again is harmless. */
  dismiss(): Promise<void>;
  /** How long a new task waits for the agent. */
  readonly taskTtl: Duration;
  /** An agent that was not heard for so long does not call any more. */
  readonly silentAfter: Duration;
}

/** What every step that asks agents for something works with. */
export interface WithAgent {
  readonly agent: AgentOfNode;
}
