import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  FleetNodeDetailSchema,
  FleetNodeSchema,
  PreviewOnboardingResponseSchema,
} from "../../../../contract/millwright/v1/fleet_node_pb.js";
import type { FleetJobView, FleetNodeRecord, FleetNodeView } from "../../../services/fleet/nodes.ts";
import type { OnboardingPreview } from "../../../services/fleet/onboard-preview.ts";
import { durationOf, timestampOf } from "../../convert/fields.ts";

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
}: FleetNodeView): MessageInitShape<typeof FleetNodeDetailSchema> => ({
  node: fleetNodeOf(node),
  ...(job && { job: jobOf(job) }),
  ...(maas && { maas: { state: maas.observed, statusName: maas.statusName, seenAt: timestampOf(maas.seenAt) } }),
  nextCommand: next.command,
  nextWhy: next.why,
});

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
