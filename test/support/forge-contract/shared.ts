/** Every field with its number, its presence and its type; then the numbers that nobody may give out again. */
// biome-ignore format: a table is read by its columns
export const SHARED: Readonly<Record<string, string>> = {
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
  DeletedFilter:                   "DELETED_FILTER_EXCLUDE=0, DELETED_FILTER_ONLY=1, DELETED_FILTER_INCLUDE=2",
  HealthReportApplyMode:           "Merge=0, Replace=1",
  ControllerStateOutcome:          "WAIT=0, ERROR=1, TRANSITION=2, DO_NOTHING=3, TODO=4",
  PlacementInRack:                       "slot_number=1 optional int32; tray_index=2 optional int32",
  SwitchIdList:                          "ids=1 repeated common.SwitchId",
  RackIdList:                            "rack_ids=1 repeated common.RackId",
};
