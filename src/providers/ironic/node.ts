import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { nameOf } from "../transport/bmc-gateway.ts";
import { type Resource, textAt, valueAt } from "../transport/device-json.ts";
import type { IronicClient } from "./client.ts";
import { nodePlaceOf } from "./node-place.ts";

/** A node as Ironic tells of it now, in Ironic's words. */
export interface IronicNode {
  /** For messages: which node of which Ironic. */
  readonly label: string;
  /** Ironic's name of it, for commands that people are told to give. */
  readonly id: string;
  readonly uuid: string;
  readonly power: string | undefined;
  readonly targetPower: string | undefined;
  readonly provision: string;
  /** When the provision state changed last, in Ironic's own words: only good to be compared. */
  readonly provisionSince: string;
  readonly deployInterface: string | undefined;
  readonly lastError: string | undefined;
  /** When Ironic last began to change the power. Older ones do not tell. */
  readonly lastPowerChange: string | undefined;
  readonly maintenance: boolean;
  readonly maintenanceReason: string | undefined;
  /** Why Ironic itself took it out of use: it lost the BMC, or cleaning failed. */
  readonly fault: string | undefined;
  readonly properties: unknown;
  readonly instanceInfo: unknown;
  readonly certificateFingerprint: string | undefined;
}

/** What is read: not `driver_info`, which holds how Ironic signs in to the BMC. */
const FIELDS = [
  "uuid",
  "name",
  "power_state",
  "target_power_state",
  "provision_state",
  "provision_updated_at",
  "deploy_interface",
  "last_error",
  "driver_internal_info",
  "maintenance",
  "maintenance_reason",
  "fault",
  "properties",
  "instance_info",
].join(",");

/** Opens nodes. */
export interface Nodes {
  readonly client: IronicClient;
  read(target: BmcTarget, call: CallContext): Promise<IronicNode>;
  /** For commands: refused while Ironic, or an operator of it, keeps hands off the node. */
  readForCommand(target: BmcTarget, call: CallContext): Promise<IronicNode>;
}

export function createNodes(client: IronicClient): Nodes {
  const read: Nodes["read"] = async (target, call) => {
    const { resource, certificateFingerprint } = await client.get(target, `?fields=${FIELDS}`, call);
    return nodeOf(target, resource, certificateFingerprint);
  };
  return {
    client,
    read,
    async readForCommand(target, call) {
      const node = await read(target, call);
      if (node.maintenance) throw inMaintenance(node);
      return node;
    },
  };
}

function nodeOf(target: BmcTarget, resource: Resource, certificateFingerprint: string | undefined): IronicNode {
  const id = nodePlaceOf(target).node;
  const label = `node ${id} of ${nameOf({ ...target, noun: "Ironic" })}`;
  const uuid = textAt(resource, "uuid");
  const provision = textAt(resource, "provision_state");
  if (uuid === undefined || provision === undefined) {
    throw new DeviceFailure("protocol", "bmc", `${label}: the answer is not that of a node in Ironic`);
  }
  return {
    label,
    id,
    uuid,
    power: textAt(resource, "power_state"),
    targetPower: textAt(resource, "target_power_state"),
    provision,
    provisionSince: textAt(resource, "provision_updated_at") ?? "",
    deployInterface: textAt(resource, "deploy_interface"),
    lastError: textAt(resource, "last_error"),
    lastPowerChange: textAt(resource, "driver_internal_info", "last_power_state_change"),
    maintenance: valueAt(resource, "maintenance") === true,
    maintenanceReason: textAt(resource, "maintenance_reason"),
    fault: textAt(resource, "fault"),
    properties: valueAt(resource, "properties"),
    instanceInfo: valueAt(resource, "instance_info"),
    certificateFingerprint,
  };
}

/** From a fault of its own finding Ironic returns by itself; from what a person said, only that person takes it. */
function inMaintenance({ label, id, fault, maintenanceReason }: IronicNode): DeviceFailure {
  const why = maintenanceReason === undefined ? "without a reason given" : maintenanceReason;
  return fault === undefined
    ? new DeviceFailure(
        "refused_by_device",
        "bmc",
        `${label} is in maintenance: ${why}. Nothing is done to it until that is over (openstack baremetal node maintenance unset ${id})`,
      )
    : new DeviceFailure("refused_by_device", "bmc", `${label} is out of use because of a fault (${fault}): ${why}`, {
        disposition: "retry",
      });
}
