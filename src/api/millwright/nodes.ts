import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  NodeGroupSchema,
  NodeSchema,
  NodeService,
  WorkflowSchema,
} from "../../../contract/millwright/v1/node_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { armNode } from "../../services/install/boot/arming.ts";
import { confirmErased } from "../../services/install/boot/erasure.ts";
import { type DeviceGroupRecord, pageGroups } from "../../services/install/device-groups.ts";
import type { InstallRecord } from "../../services/install/installs.ts";
import { pageNodes } from "../../services/install/node-list.ts";
import { changeNodeState } from "../../services/install/state/state-changes.ts";
import { pageWorkflows, type WorkflowRecord } from "../../services/install/workflows.ts";
import { timestampOf } from "../convert/fields.ts";
import { listRequestFrom, pageOf } from "../convert/listing.ts";
import { callerKey } from "../transport/interceptors.ts";

export const nodes = (deps: ServiceDeps): ServiceImpl<typeof NodeService> => ({
  async listNodes(request, { values }) {
    const page = await pageNodes(deps, listRequestFrom(request, values.get(callerKey)));
    return { nodes: page.items.map(nodeOf), ...pageOf(page) };
  },
  async changeNodeState({ id, ...change }, { values }) {
    return { node: nodeOf(await changeNodeState(deps, values.get(callerKey), id, change)) };
  },
  async armNode({ id }, { values }) {
    return { node: nodeOf(await armNode(deps, values.get(callerKey), id)) };
  },
  async confirmNodeErased({ id, comment }, { values }) {
    return { node: nodeOf(await confirmErased(deps, values.get(callerKey), id, comment)) };
  },
  async listWorkflows() {
    return { workflows: (await pageWorkflows(deps, {})).map(workflowOf) };
  },
  async listNodeGroups() {
    return { groups: (await pageGroups(deps, {})).map(groupOf) };
  },
});

const workflowOf = ({ boot, steps, ...workflow }: WorkflowRecord): MessageInitShape<typeof WorkflowSchema> => ({
  id: workflow.id,
  name: workflow.name,
  description: workflow.description,
  osFamily: workflow.osFamily,
  architecture: workflow.architecture,
  bootMode: workflow.bootMode,
  method: boot.method,
  steps: steps.map(({ sequence, name, type, on_failure, max_retries, timeout_seconds }) => ({
    ...{ sequence, name, type, onFailure: on_failure, maxRetries: max_retries, timeoutSeconds: timeout_seconds },
  })),
  nextState: workflow.nextState,
  createdAt: timestampOf(workflow.createdAt),
  updatedAt: timestampOf(workflow.updatedAt),
});

const groupOf = (group: DeviceGroupRecord): MessageInitShape<typeof NodeGroupSchema> => ({
  id: group.id,
  name: group.name,
  description: group.description,
  parentId: group.parentId ?? "",
  depth: group.depth,
  defaultWorkflowId: group.defaultWorkflowId ?? "",
  effectiveWorkflowId: group.effectiveWorkflowId ?? "",
  effectiveAutoProvision: group.effectiveAutoProvision,
  effectiveAutoPromote: group.effectiveAutoPromote,
  createdAt: timestampOf(group.createdAt),
});

const nodeOf = ({ facts, ...node }: InstallRecord): MessageInitShape<typeof NodeSchema> => ({
  id: node.id,
  macAddress: node.mac,
  hostname: facts.hostname ?? "",
  ipAddress: facts.ipAddress ?? "",
  state: node.state.name,
  stateChangedAt: timestampOf(node.stateSince),
  workflowId: node.workflowId ?? "",
  effectiveWorkflowId: node.effectiveWorkflowId ?? "",
  groupId: node.groupId ?? "",
  tags: [...node.tags],
  vendor: facts.vendor ?? "",
  model: facts.model ?? "",
  serialNumber: facts.serialNumber ?? "",
  systemUuid: facts.systemUuid ?? "",
  arch: node.arch,
  bootMode: node.bootMode,
  installAttempts: facts.installAttempts,
  lastInstallError: facts.lastInstallError ?? "",
  ...(facts.progress !== null && { installationProgress: facts.progress }),
  createdAt: timestampOf(node.createdAt),
  updatedAt: timestampOf(node.updatedAt),
  lastSeenAt: timestampOf(facts.lastSeenAt),
  installationSteps: facts.steps.map(({ message, required: _, ...step }) => ({ ...step, message: message ?? "" })),
});
