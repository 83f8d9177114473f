/** Every field with its number, its presence and its type; then the numbers that nobody may give out again. */
// biome-ignore format: a table is read by its columns
export const COMMON: Readonly<Record<string, string>> = {
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
  RackHardwareType:                      "value=1 string",
  SystemPowerControl:                    "SYSTEM_POWER_CONTROL_UNKNOWN=0, SYSTEM_POWER_CONTROL_ON=1, SYSTEM_POWER_CONTROL_GRACEFUL_SHUTDOWN=2, SYSTEM_POWER_CONTROL_FORCE_OFF=3, SYSTEM_POWER_CONTROL_GRACEFUL_RESTART=4, SYSTEM_POWER_CONTROL_FORCE_RESTART=5, SYSTEM_POWER_CONTROL_AC_POWERCYCLE=6",
};

/** Every field with its number, its presence and its type; then the numbers that nobody may give out again. */
// biome-ignore format: a table is read by its columns
export const HEALTH: Readonly<Record<string, string>> = {
  HealthReport:       "source=1 string; observed_at=2 optional google.protobuf.Timestamp; successes=3 repeated HealthProbeSuccess; alerts=4 repeated HealthProbeAlert; triggered_by=5 optional string",
  HealthProbeAlert:   "id=1 string; in_alert_since=2 optional google.protobuf.Timestamp; message=3 string; tenant_message=4 optional string; classifications=5 repeated string; target=6 optional string",
  HealthProbeSuccess: "id=1 string; target=2 optional string",
};
