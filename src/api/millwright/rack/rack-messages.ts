import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  RackMemberSchema,
  RackProfilePart,
  RackProfileSchema,
  RackRequestSchema,
  RackSchema,
  RackProfile as WireProfile,
} from "../../../../contract/millwright/v1/rack_pb.js";
import { AppError } from "../../../kernel/errors.ts";
import { parseCause } from "../../../kernel/stored-cause.ts";
import type { ProfilePart, RackProfile } from "../../../services/catalog/rack-profiles.ts";
import { metadataVersionOf } from "../../../services/device/metadata.ts";
import type { RackDevice } from "../../../services/rack/devices.ts";
import type { RackRecord, RackView } from "../../../services/rack/racks.ts";
import { durationOf, nonEmpty, timestampOf } from "../../convert/fields.ts";
import { labelMapOf } from "../../convert/metadata.ts";
import { rackStateText } from "../../forge/rack-state.ts";

type WireRack = MessageInitShape<typeof RackSchema>;

export function rackOf(view: RackView, devices: readonly RackDevice[] = []): WireRack {
  const { rack } = view;
  const { name: state, ...carried } = rack.state;
  const { workSet } = rack.facts;
  return {
    id: rack.id,
    name: rack.name,
    description: rack.description,
    labels: labelMapOf(rack.labels),
    metadataVersion: metadataVersionOf(rack),
    profile: rack.profileId ?? "",
    profileExists: rack.profile !== null,
    state,
    stateText: rackStateText(state, carried),
    stateSince: timestampOf(rack.stateSince),
    reason: view.reason,
    stuck: view.stuck,
    error: state === "error" ? (rack.state.cause ?? "") : "",
    cause: (rack.outcome?.cause ?? parseCause(rack.state.failure))?.code ?? "",
    runId: rack.state.run ?? "",
    counts: view.counts.map(({ notReady, ...count }) => ({ ...count, notReady: [...notReady] })),
    members: devices.map(memberOf),
    ...requestsOf(rack),
    leftOut: workSet?.leftOut.map(({ id, why }) => ({ id, why })) ?? [],
    firmware: workSet?.firmware?.id ?? rack.defaultFirmware?.id ?? "",
    createdAt: timestampOf(rack.createdAt),
    deletedAt: timestampOf(rack.deletedAt),
    nextCheckAt: timestampOf(rack.nextCheckAt),
    condition: view.condition ?? "",
    failing: view.lastPass === "failed",
    failingSince: timestampOf(view.failingSince),
    urgency: view.urgency,
    sla: durationOf(view.sla),
    defaultFirmware: rack.defaultFirmware?.id ?? "",
  };
}

const memberOf = (device: RackDevice): MessageInitShape<typeof RackMemberSchema> => ({
  kind: device.kind,
  id: device.id,
  name: device.name,
  state: device.state,
  slot: device.slot,
  assigned: device.assigned ?? "",
  unprovenRun: device.unprovenRun ?? "",
  why: device.why,
  powerState: device.power ?? "unknown",
  wantedFirmware: device.wantedFirmware ?? "",
  firmware: device.firmware.map(({ component, installed, wanted }) => ({
    component,
    installed: installed ?? "",
    wanted,
  })),
});

function requestsOf(rack: RackRecord): Pick<WireRack, "pendingRequests" | "lastRequests"> {
  const { maintenanceRequest, reprovisionRequest, lastMaintenanceRequest, lastReprovisionRequest } = rack;
  const all = (maintenance: Kept | null, reprovision: Kept | null) => [
    ...(maintenance ? [requestOf("maintenance", maintenance)] : []),
    ...(reprovision ? [requestOf("reprovision", reprovision)] : []),
  ];
  return {
    pendingRequests: all(maintenanceRequest, reprovisionRequest),
    lastRequests: all(lastMaintenanceRequest, lastReprovisionRequest),
  };
}

type Kept = NonNullable<RackRecord["maintenanceRequest"]> & {
  readonly outcome?: string;
  readonly ended_at?: string;
  readonly message?: string | null;
};

const requestOf = (kind: string, kept: Kept): MessageInitShape<typeof RackRequestSchema> => ({
  id: kept.id,
  kind,
  initiator: kept.initiator,
  requestedAt: timestampOf(new Date(kept.requested_at)),
  wish: JSON.parse(JSON.stringify({ ...kept.scope, activities: kept.activities })),
  outcome: kept.outcome ?? "",
  endedAt: timestampOf(kept.ended_at === undefined ? null : new Date(kept.ended_at)),
  message: kept.message ?? "",
});

export const profileOf = (profile: RackProfile): MessageInitShape<typeof RackProfileSchema> => ({
  name: profile.name,
  hardwareType: profile.hardwareType ?? "",
  topology: profile.topology ?? "",
  class: profile.class,
  compute: partOf(profile.compute),
  switches: partOf(profile.switches),
  powerShelves: partOf(profile.powerShelves),
});

const partOf = ({ count, name, vendor, slotIds, watts }: ProfilePart) => ({
  count,
  name: name ?? "",
  vendor: vendor ?? "",
  slotIds: [...slotIds],
  watts: watts ?? 0,
});

export function profileFrom(message: WireProfile): RackProfile {
  const kind = message.class === "" ? "prod" : message.class;
  if (kind !== "dev" && kind !== "prod")
    throw new AppError("invalid_argument", "profile.class: must be dev or prod", { field: "profile.class" });
  return {
    name: message.name,
    hardwareType: nonEmpty(message.hardwareType) ?? null,
    topology: nonEmpty(message.topology) ?? null,
    class: kind,
    compute: partFrom(message.compute),
    switches: partFrom(message.switches),
    powerShelves: partFrom(message.powerShelves),
  };
}

const partFrom = (part: RackProfilePart | undefined): ProfilePart => ({
  count: part?.count ?? 0,
  name: nonEmpty(part?.name ?? "") ?? null,
  vendor: nonEmpty(part?.vendor ?? "") ?? null,
  slotIds: part?.slotIds ?? [],
  watts: part === undefined || part.watts === 0 ? null : part.watts,
});
