import type { MessageInitShape, JsonObject as WireJsonObject } from "@bufbuild/protobuf";
import {
  type ClaimSchema,
  type DeviceLogEntrySchema,
  type HealthSourceSchema,
  type SensorReadingSchema,
  TlsTrustMode,
} from "../../../contract/millwright/v1/power_shelf_pb.js";
import { metadataVersionOf } from "../../services/device/metadata.ts";
import type { Claim, DeviceRecord, DeviceStanding } from "../../services/device/standing.ts";
import { durationOf, timestampOf } from "../convert/fields.ts";
import { labelMapOf } from "../convert/metadata.ts";

type Trust = DeviceRecord["bmc"]["trust"];

export const WIRE_TRUST = {
  ca: TlsTrustMode.CA,
  pin: TlsTrustMode.PIN,
  off: TlsTrustMode.OFF,
} as const satisfies Record<Trust, TlsTrustMode>;

/** What the messages of all devices have under the same names. */
export function deviceOf(device: DeviceRecord, standing: DeviceStanding) {
  return {
    id: device.id,
    name: device.name,
    description: device.description,
    labels: labelMapOf(device.labels),
    rackId: device.rackId ?? "",
    ...stateOf(device, standing),
    ...factsOf(device),
    ...healthOf(standing),
    bmc: bmcOf(device),
    ...(standing.claim && { claim: claimOf(standing.claim) }),
    waitingClaims: standing.waitingClaims.map(claimOf),
    deletedAt: timestampOf(device.deletedAt),
    createdAt: timestampOf(device.createdAt),
    version: BigInt(device.version),
    failures: device.failures,
    nextCheckAt: timestampOf(device.nextCheckAt),
    metadataVersion: metadataVersionOf(device),
  };
}

function stateOf(device: DeviceRecord, { reason, sla, stuck, condition, lastPass, failingSince }: DeviceStanding) {
  const { name, ...carried } = device.state;
  return {
    state: name,
    stateDetail: carried as WireJsonObject,
    stateReason: reason,
    stateSince: timestampOf(device.stateSince),
    stateVersion: BigInt(device.stateVersion),
    sla: durationOf(sla),
    stuck,
    condition: condition ?? "",
    failing: lastPass === "failed",
    failingSince: timestampOf(failingSince),
  };
}

const factsOf = ({ facts }: DeviceRecord) => ({
  powerState: facts.powerState ?? "unknown",
  powerStateObservedAt: timestampOf(facts.observedAt === null ? null : new Date(facts.observedAt)),
  healthStatus: facts.health ?? "unknown",
  serial: facts.serial ?? "",
  vendor: facts.vendor ?? "",
  model: facts.model ?? "",
  sensors: facts.sensors.map(
    ({ name, value, unit }): MessageInitShape<typeof SensorReadingSchema> => ({ name, value, unit }),
  ),
});

function healthOf({ healthWord, health, reports }: DeviceStanding) {
  const counted = new Set(health.sources.map(({ source }) => source));
  return {
    health: healthWord,
    healthSources: reports.map(
      ({ report, mode }): MessageInitShape<typeof HealthSourceSchema> => ({
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
      }),
    ),
  };
}

const bmcOf = ({ bmc, facts }: DeviceRecord) => ({
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

export const logEntriesOf = ({ facts }: DeviceRecord): MessageInitShape<typeof DeviceLogEntrySchema>[] =>
  facts.deviceLog.map(({ id, at, severity, message }) => ({
    id,
    at: timestampOf(at === null ? null : new Date(at)),
    severity,
    message,
  }));
