import type { MessageInitShape, JsonObject as WireJsonObject } from "@bufbuild/protobuf";
import {
  type ClaimSchema,
  type CreatePowerShelfRequest,
  DeletedShelves,
  type DeviceLogEntrySchema,
  type ListPowerShelvesRequest,
  type MaintenanceRequestSchema,
  type PowerShelfSchema,
  TlsTrustMode,
} from "../../../contract/millwright/v1/power_shelf_pb.js";
import { metadataVersionOf } from "../../services/device/metadata.ts";
import type { Claim } from "../../services/device/standing.ts";
import type { CreatePowerShelf } from "../../services/power-shelf/power-shelves.ts";
import type { PowerShelfQuery, PowerShelfRecord, PowerShelfView } from "../../services/power-shelf/view.ts";
import { durationOf, int32Of, nonEmpty, timestampOf, wordFor } from "../convert/fields.ts";
import { listRequestFrom } from "../convert/listing.ts";
import { labelMapOf } from "../convert/metadata.ts";

type Trust = CreatePowerShelf["trust"];

export const WIRE_TRUST = {
  ca: TlsTrustMode.CA,
  pin: TlsTrustMode.PIN,
  off: TlsTrustMode.OFF,
} as const satisfies Record<Trust, TlsTrustMode>;

const TRUST = {
  [TlsTrustMode.UNSPECIFIED]: "pin",
  [TlsTrustMode.CA]: "ca",
  [TlsTrustMode.PIN]: "pin",
  [TlsTrustMode.OFF]: "off",
} as const satisfies Record<TlsTrustMode, Trust>;

export const createPowerShelfFrom = (message: CreatePowerShelfRequest): CreatePowerShelf => ({
  id: nonEmpty(message.id),
  name: message.name,
  rackId: nonEmpty(message.rackId),
  bmcEndpoint: message.bmcEndpoint,
  bmcMac: message.bmcMac,
  bmcUsername: message.bmcUsername,
  bmcPassword: message.bmcPassword,
  bmcScheme: message.bmcScheme,
  trust: wordFor<Trust>(TRUST, message.tlsTrust, "tls_trust"),
  requestId: nonEmpty(message.requestId),
});

type Deleted = PowerShelfQuery["deleted"];
const DELETED = {
  [DeletedShelves.UNSPECIFIED]: "by_filter",
  [DeletedShelves.EXCLUDE]: "exclude",
  [DeletedShelves.ONLY]: "only",
  [DeletedShelves.INCLUDE]: "include",
} as const satisfies Record<DeletedShelves, NonNullable<Deleted> | "by_filter">;

function deletedFrom(which: DeletedShelves): Deleted {
  const word = wordFor<NonNullable<Deleted> | "by_filter">(DELETED, which, "deleted");
  return word === "by_filter" ? undefined : word;
}

export const powerShelfQueryFrom = (message: ListPowerShelvesRequest): PowerShelfQuery => ({
  ...listRequestFrom(message),
  rackId: nonEmpty(message.rackId),
  state: nonEmpty(message.state),
  powerState: nonEmpty(message.powerState),
  stuckOnly: message.stuckOnly,
  failingOnly: message.failingOnly,
  deleted: deletedFrom(message.deleted),
  bmcMac: nonEmpty(message.bmcMac),
});

type WireShelf = MessageInitShape<typeof PowerShelfSchema>;

export function powerShelfOf(view: PowerShelfView): WireShelf {
  const { shelf } = view;
  return {
    id: shelf.id,
    name: shelf.name,
    description: shelf.description,
    labels: labelMapOf(shelf.labels),
    rackId: shelf.rackId ?? "",
    ...stateOf(view),
    ...requestsOf(shelf),
    ...factsOf(shelf),
    ...healthOf(view),
    bmc: bmcOf(shelf),
    ...(view.claim && { claim: claimOf(view.claim) }),
    waitingClaims: view.waitingClaims.map(claimOf),
    deletedAt: timestampOf(shelf.deletedAt),
    createdAt: timestampOf(shelf.createdAt),
    version: BigInt(shelf.version),
    failures: shelf.failures,
    nextCheckAt: timestampOf(shelf.nextCheckAt),
    metadataVersion: metadataVersionOf(shelf),
  };
}

function stateOf({ shelf, reason, sla, stuck, condition, lastPass, failingSince }: PowerShelfView) {
  const { name, ...carried } = shelf.state;
  return {
    state: name,
    stateDetail: carried as WireJsonObject,
    stateReason: reason,
    stateSince: timestampOf(shelf.stateSince),
    stateVersion: BigInt(shelf.stateVersion),
    sla: durationOf(sla),
    stuck,
    condition: condition ?? "",
    failing: lastPass === "failed",
    failingSince: timestampOf(failingSince),
  } satisfies WireShelf;
}

function requestsOf({ maintenanceRequest: pending, lastMaintenanceRequest: last }: PowerShelfRecord) {
  type WireRequest = MessageInitShape<typeof MaintenanceRequestSchema>;
  const asked = ({ id, operation, initiator, requestedAt }: NonNullable<typeof pending>): WireRequest => ({
    id,
    operation,
    initiator,
    requestedAt: timestampOf(requestedAt),
  });
  return {
    ...(pending && { pendingRequest: asked(pending) }),
    ...(last && {
      lastRequest: {
        ...asked(last),
        outcome: last.outcome,
        endedAt: timestampOf(last.endedAt),
        message: last.message ?? "",
      },
    }),
  } satisfies WireShelf;
}

function factsOf({ facts }: PowerShelfRecord) {
  const [capacityWatts, voltage] = [int32Of(facts.capacityWatts), int32Of(facts.voltage)];
  return {
    powerState: facts.powerState ?? "unknown",
    powerStateObservedAt: timestampOf(facts.observedAt === null ? null : new Date(facts.observedAt)),
    healthStatus: facts.health ?? "unknown",
    serial: facts.serial ?? "",
    vendor: facts.vendor ?? "",
    model: facts.model ?? "",
    ...(capacityWatts !== undefined && { capacityWatts }),
    ...(voltage !== undefined && { voltage }),
    powerSupplies: facts.powerSupplies.map((supply) => ({
      name: supply.name,
      serial: supply.serial ?? "",
      firmwareVersion: supply.firmware ?? "",
      health: supply.health ?? "",
      ...(supply.on !== null && { on: supply.on }),
    })),
    sensors: facts.sensors.map(({ name, value, unit }) => ({ name, value, unit })),
  } satisfies WireShelf;
}

export const logEntriesOf = ({ shelf }: PowerShelfView): MessageInitShape<typeof DeviceLogEntrySchema>[] =>
  shelf.facts.deviceLog.map(({ id, at, severity, message }) => ({
    id,
    at: timestampOf(at === null ? null : new Date(at)),
    severity,
    message,
  }));

function healthOf({ healthWord, health, reports }: PowerShelfView) {
  const counted = new Set(health.sources.map(({ source }) => source));
  return {
    health: healthWord,
    healthSources: reports.map(({ report, mode }) => ({
      source: report.source,
      mode,
      counts: counted.has(report.source),
      observedAt: timestampOf(report.observedAt),
      alerts: report.alerts.map(({ id, target, message, inAlertSince }) => ({
        id,
        target: target ?? "",
        message,
        since: timestampOf(inAlertSince),
      })),
    })),
  } satisfies WireShelf;
}

const bmcOf = ({ bmc, facts }: PowerShelfRecord): WireShelf["bmc"] => ({
  address: bmc.address,
  port: bmc.port,
  mac: bmc.mac,
  firmwareVersion: facts.bmcFirmware ?? "",
  certificateFingerprint: bmc.trust === "pin" ? (facts.certificateFingerprint ?? "") : "",
  tlsTrust: WIRE_TRUST[bmc.trust],
});

const claimOf = ({ holder, grantedAt, requestedAt }: Claim): MessageInitShape<typeof ClaimSchema> => ({
  holderKind: holder.kind,
  holderId: holder.id,
  since: timestampOf(grantedAt ?? requestedAt),
});
