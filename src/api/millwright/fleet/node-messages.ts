import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  FleetNodeDetailSchema,
  FleetNodeSchema,
  FleetTaskSchema,
  PreviewOnboardingResponseSchema,
} from "../../../../contract/millwright/v1/fleet_node_pb.js";
import type { FleetAgentView, FleetJobView, FleetNodeRecord, FleetNodeView } from "../../../services/fleet/nodes.ts";
import type { OnboardingPreview } from "../../../services/fleet/previews/onboard-preview.ts";
import type { ListedTask } from "../../../services/fleet/tasks.ts";
import { durationOf, timestampOf } from "../../convert/fields.ts";
import { withCall } from "../explanation-messages.ts";

export const fleetNodeOf = (node: FleetNodeRecord): MessageInitShape<typeof FleetNodeSchema> => {
  const { id, site, profile, sku, hostname, mode, machineId, createdBy, facts } = node;
  return {
    ...{ id, site, profile, sku, hostname, mode, machineId, createdBy },
    ipmiIp: node.ipmiIp ?? "",
    state: node.state.name,
    stateSince: timestampOf(node.stateSince),
    systemId: facts.systemId ?? "",
    quarantineReason: facts.quarantineReason ?? "",
    createdAt: timestampOf(node.createdAt),
  };
};

export const fleetNodeDetailOf = ({
  node,
  job,
  maas,
  next,
  agent,
}: FleetNodeView): MessageInitShape<typeof FleetNodeDetailSchema> => ({
  node: fleetNodeOf(node),
  ...(job && { job: jobOf(job) }),
  ...(maas && { maas: { state: maas.observed, statusName: maas.statusName, seenAt: timestampOf(maas.seenAt) } }),
  nextCommand: next.command,
  ...withCall("nextCall", next.command),
  nextWhy: next.why,
  ...(agent && { agent: agentOf(agent) }),
});

const agentOf = ({ enrolledAt, heard }: FleetAgentView) => ({
  enrolledAt: timestampOf(enrolledAt),
  ...(heard && { seenAt: timestampOf(heard.seenAt) }),
  ...{ health: heard?.health ?? "", message: heard?.message ?? "", version: heard?.agentVersion ?? "" },
});

export const fleetTaskOf = (task: ListedTask): MessageInitShape<typeof FleetTaskSchema> => {
  const { id, nodeId, hostname, taskType, state, stateSince, facts, expiresAt, createdAt } = task;
  const at = (text: string | null) => (text === null ? undefined : timestampOf(new Date(text)));
  const [dispatchedAt, leaseUntil, finishedAt] = [at(facts.dispatchedAt), at(facts.leaseUntil), at(facts.finishedAt)];
  return {
    ...{ id, nodeId, hostname: hostname ?? "", taskType, state: state.name, message: facts.message },
    ...{ runId: facts.run ?? "", stateSince: timestampOf(stateSince), createdAt: timestampOf(createdAt) },
    expiresAt: timestampOf(expiresAt),
    ...(dispatchedAt && { dispatchedAt }),
    ...(leaseUntil && { leaseUntil }),
    ...(finishedAt && { finishedAt }),
  };
};

const jobOf = ({ createdAt, finishedAt, failureClass, workflow: _, ...job }: FleetJobView) => ({
  ...job,
  failureClass,
  createdAt: timestampOf(createdAt),
  ...(finishedAt && { finishedAt: timestampOf(finishedAt) }),
});

export const onboardingPreviewOf = ({
  machineId,
  registersMachine,
  obstacles,
  stages,
  maas: { machine, ...inMaas },
  atMost,
  notes,
}: OnboardingPreview): MessageInitShape<typeof PreviewOnboardingResponseSchema> => {
  const longest = durationOf(atMost);
  return {
    ...{ machineId: machineId ?? "", registersMachine, notes: [...notes] },
    obstacles: obstacles.map((obstacle) => ({ ...obstacle })),
    stages: stages.map(({ deadline, ...stage }) => {
      const most = durationOf(deadline);
      return { ...stage, ...(most && { deadline: most }) };
    }),
    maas: { ...inMaas, ...machine },
    ...(longest && { atMost: longest }),
  };
};
