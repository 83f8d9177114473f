import { StepFailure } from "../../kernel/errors.ts";
import { minutes } from "../../kernel/time/duration.ts";
import { cloudConfigOf } from "../../lifecycles/fleet-node/agent-bootstrap.ts";
import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import { isLive } from "../../lifecycles/fleet-task/fleet-task.ts";
import type { AgentOfNode } from "../../runs/steps/fleet/agent-of-node.ts";
import type { EnrolmentOfNode } from "../../runs/steps/fleet/enrolment-of-node.ts";
import { dismissAgent, findAgent, findHeartbeats } from "../../store/fleet/agents.ts";
import { currentEnrolment } from "../../store/fleet/enrolment.ts";
import { findOpenTasks, fleetTaskStore } from "../../store/fleet/tasks.ts";
import type { FleetAgentLimits, TargetTools } from "../things/thing.ts";

type Tools = Pick<TargetTools, "db" | "secrets" | "clock" | "fleetAgents">;

/** As the settings have them. */
const DEFAULTS: FleetAgentLimits = { taskTtl: minutes(15), silentAfter: minutes(3), server: null };

/** The agent of one node, as steps ask about it. */
export function agentOfNode({ db, clock, fleetAgents = DEFAULTS }: Tools, nodeId: string): AgentOfNode {
  const { taskTtl, silentAfter } = fleetAgents;
  return {
    taskTtl,
    silentAfter,
    isEnrolled: async () => (await findAgent(db, nodeId)) !== undefined,
    lastHeard: async () => (await findHeartbeats(db, [nodeId])).get(nodeId) ?? null,
    dismiss: () => dismissAgent(db, nodeId),
    findTask: async (id) => (await fleetTaskStore.load(db, [id])).things[0] ?? null,
    async findLiveTask(type) {
      const now = clock.now();
      return (await findOpenTasks(db, nodeId, type)).find((task) => isLive(task, now)) ?? null;
    },
  };
}

/** How the agent of the node comes to enrol. */
export function enrolmentOfNode(
  { secrets, clock, fleetAgents = DEFAULTS }: Tools,
  { id: nodeId, facts: { enrollment } }: FleetNode,
): EnrolmentOfNode {
  return {
    issue: (ttl) => currentEnrolment(secrets, { nodeId, enrollment, ttl, now: clock.now() }),
    userDataWith(token) {
      const { server } = fleetAgents;
      if (server !== null) return cloudConfigOf({ server, nodeId, token });
      throw new StepFailure(
        "not_on_this_server",
        "this server does not know where fleet nodes reach it: set fleet.public_url and restart the server",
        { disposition: "intervene", facts: { what: "setting", name: "fleet.public_url" } },
      );
    },
  };
}
