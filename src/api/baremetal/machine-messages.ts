import {
  type Condition as WireCondition,
  type MachineInventory as WireInventory,
  type Machine as WireMachine,
  MachineStatus_Phase as WirePhase,
  type MachineSpec as WireSpec,
  type MachineStatus as WireStatus,
} from "../../../contract/baremetal/v1/baremetal_pb.js";
import type { MachineInput, SpecInput } from "../../services/machine/machines.ts";
import type { Condition, MachinePhase, MachineRecord, MachineView } from "../../services/machine/view.ts";
import { nonEmpty, required, timestampOf } from "../convert/fields.ts";

export const WIRE_PHASES = {
  FACTORY_READY: WirePhase.FACTORY_READY,
  READY: WirePhase.READY,
  PROVISIONING: WirePhase.PROVISIONING,
  IN_SERVICE: WirePhase.IN_SERVICE,
  MAINTENANCE: WirePhase.MAINTENANCE,
  RMA: WirePhase.RMA,
  RETIRED: WirePhase.RETIRED,
} as const satisfies Record<MachinePhase, WirePhase>;

/** Status is the server's: what a caller sends of it is not even read. */
export function machineFrom(machine: WireMachine | undefined): MachineInput {
  const { machineId, labels, spec } = required(machine, "machine");
  return { id: nonEmpty(machineId), labels, spec: spec && specFrom(spec) };
}

const specFrom = (spec: WireSpec): SpecInput => ({
  provider: spec.provider,
  serial: spec.serial,
  macAddresses: spec.macAddresses,
  rack: spec.rack,
  slot: spec.slot,
  location: spec.location,
  customerId: spec.customerId,
  targetClusterRef: spec.targetClusterRef,
  sshEndpoint: spec.sshEndpoint,
  sshHostKey: spec.sshHostKey,
  jumpHosts: spec.jumpHosts.map(({ endpoint, hostKey, username }) => ({ endpoint, hostKey, username })),
  bmcEndpoint: spec.bmcEndpoint,
  bmcProtocol: spec.bmcProtocol,
  bmcTlsTrust: spec.bmcTlsTrust,
});

/** Messages as they are made by `create`, which would take as long as all the rest of a long list. */
export const machineOf = (view: MachineView): WireMachine => ({
  $typeName: "baremetal.v1.Machine",
  machineId: view.machine.id,
  labels: { ...view.machine.labels },
  spec: specOf(view.machine),
  status: statusOf(view),
  createdAt: timestampOf(view.machine.createdAt),
  version: BigInt(view.machine.version),
});

const specOf = ({ spec, given }: MachineRecord): WireSpec => ({
  $typeName: "baremetal.v1.MachineSpec",
  sshEndpoint: given.ssh,
  bmcEndpoint: given.bmc,
  targetClusterRef: spec.targetCluster ?? "",
  macAddresses: [...spec.macs],
  provider: spec.provider,
  serial: spec.serial ?? "",
  rack: spec.rack ?? "",
  slot: spec.slot ?? "",
  location: spec.location ?? "",
  customerId: spec.customerId ?? "",
  jumpHosts: given.jumpHosts.map(({ endpoint, host_key, username }) => ({
    $typeName: "baremetal.v1.JumpHost" as const,
    endpoint,
    hostKey: host_key,
    username: username ?? "",
  })),
  sshHostKey: given.sshHostKey ?? "",
  bmcProtocol: given.bmcProtocol ?? "",
  bmcTlsTrust: given.bmcTrust,
});

function statusOf(view: MachineView): WireStatus {
  const { machine, claim } = view;
  return {
    $typeName: "baremetal.v1.MachineStatus",
    phase: WIRE_PHASES[view.phase],
    conditions: machine.conditions.map(conditionOf),
    activeRunId: machine.activeRunId ?? "",
    effectiveState: WIRE_PHASES[view.effectiveState],
    banners: [...view.banners],
    waitingFor: view.waitingFor,
    phaseSince: timestampOf(machine.stateSince),
    ...(claim && {
      claim: {
        $typeName: "baremetal.v1.ClaimHolder",
        kind: claim.holder.kind,
        id: claim.holder.id,
        since: timestampOf(claim.grantedAt ?? claim.requestedAt),
      },
    }),
    residue: [...machine.facts.residue],
    ...inventoryOf(machine),
    lastRunId: machine.lastRunId ?? "",
    sshMovedTo: view.sshMovedTo,
    sshHostKey: view.hostKey?.key ?? "",
    sshHostKeyFrom: view.hostKey?.from ?? "",
    failing: view.failing,
  };
}

const conditionOf = (condition: Condition): WireCondition => ({
  $typeName: "baremetal.v1.Condition",
  type: condition.type,
  status: condition.status,
  reason: condition.reason,
  lastTransition: timestampOf(condition.lastTransition),
  message: condition.message,
});

function inventoryOf({ facts }: MachineRecord): { readonly inventory?: WireInventory } {
  if (facts.observedAt === null) return {};
  return {
    inventory: {
      $typeName: "baremetal.v1.MachineInventory",
      serial: facts.serial ?? "",
      vendor: facts.vendor ?? "",
      model: facts.model ?? "",
      bmcFirmwareVersion: facts.bmcFirmware ?? "",
      powerState: facts.powerState ?? "unknown",
      bootId: facts.bootId ?? "",
      observedAt: timestampOf(new Date(facts.observedAt)),
    },
  };
}
