/** The forge contract, held against the tables of its specification: existing fleet tools depend on every number. */
import type { DescEnum, DescField, DescFile, DescMessage } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { file_common_common } from "../../../contract/common/common_pb.js";
import { Forge, file_forge_forge } from "../../../contract/forge/forge_pb.js";
import { file_health_health } from "../../../contract/health/health_pb.js";

/** Request and answer of every method. */
// biome-ignore format: a table is read by its columns
const METHODS: Readonly<Record<string, string>> = {
  FindPowerShelves:                  "PowerShelfQuery → PowerShelfList",
  FindPowerShelfIds:                 "PowerShelfSearchFilter → PowerShelfIdList",
  FindPowerShelvesByIds:             "PowerShelvesByIdsRequest → PowerShelfList",
  DeletePowerShelf:                  "PowerShelfDeletionRequest → PowerShelfDeletionResult",
  AdminForceDeletePowerShelf:        "AdminForceDeletePowerShelfRequest → AdminForceDeletePowerShelfResponse",
  SetPowerShelfMaintenance:          "PowerShelfMaintenanceRequest → google.protobuf.Empty",
  ListPowerShelfHealthReports:       "ListPowerShelfHealthReportsRequest → ListHealthReportResponse",
  InsertPowerShelfHealthReport:      "InsertPowerShelfHealthReportRequest → google.protobuf.Empty",
  RemovePowerShelfHealthReport:      "RemovePowerShelfHealthReportRequest → google.protobuf.Empty",
  FindPowerShelfStateHistories:      "PowerShelfStateHistoriesRequest → StateHistories",
  UpdatePowerShelfMetadata:          "PowerShelfMetadataUpdateRequest → google.protobuf.Empty",
  AddExpectedPowerShelf:             "ExpectedPowerShelf → google.protobuf.Empty",
  DeleteExpectedPowerShelf:          "ExpectedPowerShelfRequest → google.protobuf.Empty",
  UpdateExpectedPowerShelf:          "ExpectedPowerShelf → google.protobuf.Empty",
  GetExpectedPowerShelf:             "ExpectedPowerShelfRequest → ExpectedPowerShelf",
  GetAllExpectedPowerShelves:        "google.protobuf.Empty → ExpectedPowerShelfList",
  ReplaceAllExpectedPowerShelves:    "ExpectedPowerShelfList → google.protobuf.Empty",
  DeleteAllExpectedPowerShelves:     "google.protobuf.Empty → google.protobuf.Empty",
  GetAllExpectedPowerShelvesLinked:  "google.protobuf.Empty → LinkedExpectedPowerShelfList",
};

/** Every field with its number, its presence and its type; then the numbers that nobody may give out again. */
// biome-ignore format: a table is read by its columns
const FORGE: Readonly<Record<string, string>> = {
  PowerShelfQuery:                      "name=1 optional string; power_shelf_id=2 common.PowerShelfId",
  PowerShelfList:                       "power_shelves=1 repeated PowerShelf",
  PowerShelfSearchFilter:               "rack_id=1 optional common.RackId; deleted=2 DeletedFilter; controller_state=3 optional string; bmc_mac=4 optional string",
  PowerShelvesByIdsRequest:             "power_shelf_ids=1 repeated common.PowerShelfId",
  PowerShelfDeletionRequest:            "id=1 common.PowerShelfId",
  PowerShelfDeletionResult:             "",
  AdminForceDeletePowerShelfRequest:    "power_shelf_id=1 common.PowerShelfId; delete_interfaces=2 bool",
  AdminForceDeletePowerShelfResponse:   "power_shelf_id=1 string; interfaces_deleted=2 uint32",
  PowerShelfMaintenanceRequest:         "power_shelf_ids=1 repeated common.PowerShelfId; operation=2 PowerShelfMaintenanceOperation; reference=3 optional string",
  ListPowerShelfHealthReportsRequest:   "power_shelf_id=1 optional common.PowerShelfId",
  InsertPowerShelfHealthReportRequest:  "power_shelf_id=1 common.PowerShelfId; health_report_entry=2 HealthReportEntry",
  RemovePowerShelfHealthReportRequest:  "power_shelf_id=1 common.PowerShelfId; source=2 string",
  PowerShelfStateHistoriesRequest:      "power_shelf_ids=1 repeated common.PowerShelfId",
  PowerShelfMetadataUpdateRequest:      "power_shelf_id=1 common.PowerShelfId; if_version_match=2 optional string; metadata=3 Metadata",
  PowerShelf:                           "id=1 common.PowerShelfId; config=2 PowerShelfConfig; status=3 PowerShelfStatus; deleted=4 optional google.protobuf.Timestamp; controller_state=5 string; metadata=6 Metadata; version=7 string; bmc_info=8 BmcInfo; state_version=9 string; rack_id=10 optional common.RackId; reserved 11, 12",
  PowerShelfConfig:                     "name=1 string; capacity=2 optional int32; voltage=3 optional int32; reserved 4",
  PowerShelfStatus:                     "state_reason=1 optional ControllerStateReason; state_sla=2 StateSla; shelf_name=3 optional string; power_state=4 optional string; health_status=5 optional string; controller_state=6 optional string; health=7 health.HealthReport; health_sources=8 repeated HealthSourceOrigin; lifecycle=9 LifecycleStatus",
  ExpectedPowerShelf:                   "bmc_mac_address=1 string; bmc_username=2 string; bmc_password=3 string; shelf_serial_number=4 string; bmc_ip_address=5 string; metadata=6 Metadata; rack_id=7 optional common.RackId; expected_power_shelf_id=8 optional common.UUID; bmc_retain_credentials=9 optional bool",
  ExpectedPowerShelfRequest:            "bmc_mac_address=1 string; expected_power_shelf_id=2 optional common.UUID",
  ExpectedPowerShelfList:               "expected_power_shelves=1 repeated ExpectedPowerShelf",
  LinkedExpectedPowerShelfList:         "expected_power_shelves=1 repeated LinkedExpectedPowerShelf",
  LinkedExpectedPowerShelf:             "shelf_serial_number=1 string; bmc_mac_address=2 string; power_shelf_id=3 optional common.PowerShelfId; expected_power_shelf_id=4 optional common.UUID; explored_endpoint_address=5 optional string; rack_id=6 optional common.RackId",
  HealthReportEntry:                    "report=1 health.HealthReport; mode=2 HealthReportApplyMode",
  ListHealthReportResponse:             "health_report_entries=1 repeated HealthReportEntry",
  StateHistories:                       "histories=1 map<string, StateHistoryRecords>",
  StateHistoryRecords:                  "records=1 repeated StateHistoryRecord",
  StateHistoryRecord:                   "state=1 string; version=2 string; time=3 google.protobuf.Timestamp",
  Metadata:                             "name=1 string; description=2 string; labels=3 repeated Label",
  Label:                                "key=1 string; value=2 optional string",
  BmcInfo:                              "ip=1 optional string; mac=2 optional string; version=3 optional string; firmware_version=4 optional string; port=5 optional uint32; machine_interface_id=6 optional common.MachineInterfaceId",
  ControllerStateReason:                "outcome=1 ControllerStateOutcome; outcome_msg=2 optional string; source_ref=3 optional ControllerStateSourceReference",
  StateSla:                             "sla=1 google.protobuf.Duration; time_in_state_above_sla=2 bool",
  HealthSourceOrigin:                   "mode=1 HealthReportApplyMode; source=2 string",
  LifecycleStatus:                      "state=1 string; version=2 string; state_reason=3 optional ControllerStateReason; sla=4 StateSla",
  ControllerStateSourceReference:       "file=1 string; line=2 int32",
  PowerShelfIdList:                     "ids=1 repeated common.PowerShelfId",
  PowerShelfMaintenanceOperation:  "POWER_SHELF_MAINTENANCE_OPERATION_UNSPECIFIED=0, POWER_SHELF_MAINTENANCE_OPERATION_POWER_ON=1, POWER_SHELF_MAINTENANCE_OPERATION_POWER_OFF=2",
  DeletedFilter:                   "DELETED_FILTER_EXCLUDE=0, DELETED_FILTER_ONLY=1, DELETED_FILTER_INCLUDE=2",
  HealthReportApplyMode:           "Merge=0, Replace=1",
  ControllerStateOutcome:          "WAIT=0, ERROR=1, TRANSITION=2, DO_NOTHING=3, TODO=4",
};

// biome-ignore format: a table is read by its columns
const COMMON: Readonly<Record<string, string>> = {
  PowerShelfId:       "id=1 string",
  SwitchId:           "id=1 string",
  MachineId:          "id=1 string",
  RackId:             "id=1 string",
  RackProfileId:      "id=1 string",
  UUID:               "value=1 string",
  MachineInterfaceId: "value=1 string",
  MachineIdList:      "machine_ids=1 repeated MachineId",
  StringList:         "items=1 repeated string",
  Uint32List:         "items=1 repeated uint32",
};

// biome-ignore format: a table is read by its columns
const HEALTH: Readonly<Record<string, string>> = {
  HealthReport:       "source=1 string; observed_at=2 optional google.protobuf.Timestamp; successes=3 repeated HealthProbeSuccess; alerts=4 repeated HealthProbeAlert; triggered_by=5 optional string",
  HealthProbeAlert:   "id=1 string; in_alert_since=2 optional google.protobuf.Timestamp; message=3 string; tenant_message=4 optional string; classifications=5 repeated string; target=6 optional string",
  HealthProbeSuccess: "id=1 string; target=2 optional string",
};

describe("the contract forge", () => {
  test("has the specified methods, none of which is a stream", () => {
    const methods = Forge.methods.map(({ name, input, output }) => [
      name,
      `${nameFrom("forge", input)} → ${nameFrom("forge", output)}`,
    ]);
    expect(Object.fromEntries(methods)).toEqual(METHODS);
    expect(Forge.methods.filter(({ methodKind }) => methodKind !== "unary")).toEqual([]);
    expect(Forge.typeName).toBe("forge.Forge");
  });

  describe.each<[DescFile, Readonly<Record<string, string>>]>([
    [file_forge_forge, FORGE],
    [file_common_common, COMMON],
    [file_health_health, HEALTH],
  ])("in $name.proto", (file, specified) => {
    const ours = new Map([...file.messages, ...file.enums].map((type) => [type.name, type]));

    test("has the specified messages and enums, and no others", () => {
      expect([...ours.keys()].toSorted()).toEqual(Object.keys(specified).toSorted());
      expect(file.extensions).toEqual([]);
    });

    test.each(Object.entries(specified))("gives %s its numbers", (name, text) => {
      const type = ours.get(name);
      expect(type && (type.kind === "enum" ? describeEnum(type) : describeMessage(type))).toBe(text);
    });
  });
});

function describeMessage(message: DescMessage): string {
  const fields = message.fields.map((field) => `${field.name}=${field.number} ${describeType(field)}`);
  // The end of a reserved range is the first number that is free.
  const reserved = message.proto.reservedRange.flatMap(({ start, end }) =>
    Array.from({ length: end - start }, (_, index) => start + index),
  );
  return [...fields, ...(reserved.length > 0 ? [`reserved ${reserved.join(", ")}`] : [])].join("; ");
}

const describeEnum = ({ values }: DescEnum): string => values.map(({ name, number }) => `${name}=${number}`).join(", ");

function describeType(field: DescField): string {
  const from = field.parent.file.proto.package;
  if (field.fieldKind === "map") {
    const value = field.message === undefined ? "?" : nameFrom(from, field.message);
    return `map<${scalarName(field.mapKey)}, ${value}>`;
  }
  const presence = field.fieldKind === "list" ? "repeated " : field.proto.proto3Optional ? "optional " : "";
  const type = field.message ?? field.enum;
  const oneof = field.oneof === undefined ? "" : ` (oneof ${field.oneof.name})`;
  return `${presence}${type === undefined ? scalarName(field.scalar) : nameFrom(from, type)}${oneof}`;
}

/** As a file of the package writes it. */
const nameFrom = (from: string, { typeName }: DescMessage | DescEnum): string =>
  typeName.startsWith(`${from}.`) ? typeName.slice(from.length + 1) : typeName;

const scalarName = (type: ScalarType | undefined): string =>
  type === undefined ? "?" : (ScalarType[type]?.toLowerCase() ?? "?");
