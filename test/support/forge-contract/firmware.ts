/** Request and answer of every method. */
// biome-ignore format: a table is read by its columns
export const FIRMWARE_METHODS: Readonly<Record<string, string>> = {
  CreateRackFirmware:                "RackFirmwareCreateRequest → RackFirmware",
  GetRackFirmware:                   "RackFirmwareGetRequest → RackFirmware",
  ListRackFirmware:                  "RackFirmwareSearchFilter → RackFirmwareList",
  DeleteRackFirmware:                "RackFirmwareDeleteRequest → google.protobuf.Empty",
  ApplyRackFirmware:                 "RackFirmwareApplyRequest → RackFirmwareApplyResponse",
  GetRackFirmwareJobStatus:          "RackFirmwareJobStatusRequest → RackFirmwareJobStatusResponse",
  GetRackFirmwareHistory:            "RackFirmwareHistoryRequest → RackFirmwareHistoryResponse",
  RackFirmwareSetDefault:            "RackFirmwareSetDefaultRequest → google.protobuf.Empty",
};

/** Every field with its number, its presence and its type. */
// biome-ignore format: a table is read by its columns
export const FIRMWARE: Readonly<Record<string, string>> = {
  RackFirmwareCreateRequest:         "config_json=1 string; artifactory_token=2 string; rack_hardware_type=3 common.RackHardwareType",
  RackFirmware:                      "id=1 string; config_json=2 string; available=3 bool; created=4 string; updated=5 string; parsed_components=6 string; rack_hardware_type=7 common.RackHardwareType; is_default=8 bool",
  RackFirmwareGetRequest:            "id=1 string",
  RackFirmwareSearchFilter:          "only_available=1 bool; rack_hardware_type=2 common.RackHardwareType",
  RackFirmwareList:                  "configs=1 repeated RackFirmware",
  RackFirmwareDeleteRequest:         "id=1 string",
  RackFirmwareApplyRequest:          "rack_id=1 common.RackId; firmware_id=2 string; firmware_type=3 string",
  RackFirmwareApplyResponse:         "total_updates=1 int32; successful_updates=2 int32; failed_updates=3 int32; device_results=4 repeated DeviceUpdateResult",
  RackFirmwareJobStatusRequest:      "job_id=1 string",
  RackFirmwareJobStatusResponse:     "job_id=1 string; state=2 string; state_description=3 string; rack_id=4 string; node_id=5 string; error_message=6 string; result_json=7 string",
  RackFirmwareHistoryRequest:        "firmware_id=1 string; rack_ids=2 repeated string",
  RackFirmwareHistoryResponse:       "histories=1 map<string, RackFirmwareHistoryRecords>",
  RackFirmwareSetDefaultRequest:     "firmware_id=1 string",
  DeviceUpdateResult:                "device_id=1 string; device_type=2 string; success=3 bool; message=4 string; job_id=5 string; node_jobs=6 repeated NodeJobInfo",
  RackFirmwareHistoryRecords:        "records=1 repeated RackFirmwareHistoryRecord",
  NodeJobInfo:                       "node_id=1 string; job_id=2 string",
  RackFirmwareHistoryRecord:         "firmware_id=1 string; rack_id=2 string; firmware_type=3 string; applied_at=4 string; firmware_available=5 bool; rack_hardware_type=6 common.RackHardwareType",
};
