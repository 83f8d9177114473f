import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { NodeSchema, NodeService } from "../../../contract/millwright/v1/node_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { armNode } from "../../services/install/boot/arming.ts";
import { confirmErased } from "../../services/install/boot/erasure.ts";
import type { InstallRecord } from "../../services/install/installs.ts";
import { pageNodes } from "../../services/install/node-list.ts";
import { timestampOf } from "../convert/fields.ts";
import { listRequestFrom, pageOf } from "../convert/listing.ts";
import { callerKey } from "../transport/interceptors.ts";

export const nodes = (deps: ServiceDeps): ServiceImpl<typeof NodeService> => ({
  async listNodes(request, { values }) {
    const page = await pageNodes(deps, listRequestFrom(request, values.get(callerKey)));
    return { nodes: page.items.map(nodeOf), ...pageOf(page) };
  },
  async armNode({ id }, { values }) {
    return { node: nodeOf(await armNode(deps, values.get(callerKey), id)) };
  },
  async confirmNodeErased({ id, comment }, { values }) {
    return { node: nodeOf(await confirmErased(deps, values.get(callerKey), id, comment)) };
  },
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
