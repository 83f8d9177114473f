import { AppError, StepFailure } from "../../kernel/errors.ts";
import { minutes, seconds } from "../../kernel/time/duration.ts";
import {
  type AgentBootstrap,
  cloudConfigOf,
  SEED_SCRIPT,
  seedVariablesOf,
} from "../../lifecycles/fleet-node/agent-bootstrap.ts";
import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import { isLive } from "../../lifecycles/fleet-task/fleet-task.ts";
import type { JumpHost } from "../../lifecycles/machine/machine.ts";
import type { AgentOfNode } from "../../runs/steps/fleet/agent-of-node.ts";
import type { EnrolmentOfNode } from "../../runs/steps/fleet/enrolment-of-node.ts";
import { noCredentials } from "../../store/access/no-credentials.ts";
import { dismissAgent, findAgent, findHeartbeats } from "../../store/fleet/agents.ts";
import { currentEnrolment } from "../../store/fleet/enrolment.ts";
import { findOpenTasks, fleetTaskStore } from "../../store/fleet/tasks.ts";
import { getMachineSshCredentials, getSshKeyElsewhere } from "../../store/machine/credentials.ts";
import { listMachines } from "../../store/machine/machines.ts";
import type { FleetAgentLimits, TargetTools } from "../things/thing.ts";

type Tools = Pick<TargetTools, "db" | "secrets" | "clock" | "fleetAgents" | "runs">;
/** The script writes three files, and has the service manager start the agent. */
const SEEDING = seconds(60);
const SSH_PORT = 22;

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
export function enrolmentOfNode(tools: Tools, node: FleetNode): EnrolmentOfNode {
  const { secrets, clock, fleetAgents = DEFAULTS } = tools;
  const {
    id: nodeId,
    facts: { enrollment },
  } = node;
  const bootstrapWith = (token: string): AgentBootstrap => {
    const { server } = fleetAgents;
    if (server !== null) return { server, nodeId, token };
    throw new StepFailure(
      "not_on_this_server",
      "this server does not know where fleet nodes reach it: set fleet.public_url and restart the server",
      { disposition: "intervene", facts: { what: "setting", name: "fleet.public_url" } },
    );
  };
  return {
    issue: (ttl) => currentEnrolment(secrets, { nodeId, enrollment, ttl, now: clock.now() }),
    userDataWith: (token) => cloudConfigOf(bootstrapWith(token)),
    async seed({ address, username, token }, call) {
      const env = seedVariablesOf(bootstrapWith(token));
      const { exec, way, privateKey } = await wayInto(tools, node);
      const ssh = {
        ...way,
        address,
        username,
        credentials: { privateKey },
        jumpHosts: way.jumpHosts.map(signedInBy(username)),
      };
      const exit = await exec.run(ssh, { script: SEED_SCRIPT, env, timeout: SEEDING, asRoot: true }, call);
      if (exit.code === 0) return;
      const how = exit.code === null ? `signal ${exit.signal}` : `exit code ${exit.code}`;
      throw new StepFailure("script_failed", `installing the agent at ${address} ended with ${how}: ${exit.output}`, {
        facts: { ...(exit.code !== null && { exit_code: exit.code }) },
      });
    },
  };
}

async function wayInto({ db, secrets, runs }: Tools, { machineId }: FleetNode) {
  const [machine] = await listMachines(db, { ids: [machineId] });
  const exec = machine && runs.hardware.providerOf(machine.spec)?.can.exec;
  if (!exec)
    throw new StepFailure("not_on_this_server", `this server has no way into machine ${machineId}`, {
      facts: { what: "provider", name: "ssh" },
    });
  // MAAS names the address, and all that is sent there is the token of this node. Jump hosts on the way are those that the key was given with.
  const [account] = machine.spec.ssh === null ? [] : await getMachineSshCredentials(db, secrets, [machine]);
  const found = account ?? (await getSshKeyElsewhere(db, secrets, machineId));
  if (found instanceof AppError) throw noCredentials(found, { at: "ssh", name: machineId });
  return { exec, way: machine.spec.ssh ?? NO_WAY_OF_ITS_OWN, privateKey: found.privateKey };
}

/**
 * The system is new: unless the owner of the machine has pinned a key, whatever key it shows is its own as far as anybody can tell. No
 * password is sent to it.
 */
const NO_WAY_OF_ITS_OWN = { port: SSH_PORT, hostKey: null, jumpHosts: [] } as const;
const signedInBy = (username: string) => (jump: JumpHost) => ({ ...jump, username: jump.username ?? username });
