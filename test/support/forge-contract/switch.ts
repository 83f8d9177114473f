/** Request and answer of every method. */
// biome-ignore format: a table is read by its columns
export const SWITCH_METHODS: Readonly<Record<string, string>> = {
  FindSwitches:                      "SwitchQuery → SwitchList",
  FindSwitchIds:                     "SwitchSearchFilter → SwitchIdList",
  FindSwitchesByIds:                 "SwitchesByIdsRequest → SwitchList",
  DeleteSwitch:                      "SwitchDeletionRequest → SwitchDeletionResult",
  AdminForceDeleteSwitch:            "AdminForceDeleteSwitchRequest → AdminForceDeleteSwitchResponse",
  ListSwitchHealthReports:           "ListSwitchHealthReportsRequest → ListHealthReportResponse",
  InsertSwitchHealthReport:          "InsertSwitchHealthReportRequest → google.protobuf.Empty",
  RemoveSwitchHealthReport:          "RemoveSwitchHealthReportRequest → google.protobuf.Empty",
  FindSwitchStateHistories:          "SwitchStateHistoriesRequest → StateHistories",
  UpdateSwitchMetadata:              "SwitchMetadataUpdateRequest → google.protobuf.Empty",
};

/** Every field with its number, its presence and its type; then the numbers that nobody may give out again. */
// biome-ignore format: a table is read by its columns
export const SWITCH: Readonly<Record<string, string>> = {
  SwitchQuery:                           "name=1 optional string; switch_id=2 common.SwitchId",
  SwitchList:                            "switches=1 repeated Switch",
  SwitchSearchFilter:                    "rack_id=1 optional common.RackId; deleted=2 DeletedFilter; controller_state=3 optional string; bmc_mac=4 optional string; nvos_mac=5 optional string; only_with_health_alert=6 optional string",
  SwitchesByIdsRequest:                  "switch_ids=1 repeated common.SwitchId",
  SwitchDeletionRequest:                 "id=1 common.SwitchId",
  SwitchDeletionResult:                  "",
  AdminForceDeleteSwitchRequest:         "switch_id=1 common.SwitchId; delete_interfaces=2 bool",
  AdminForceDeleteSwitchResponse:        "switch_id=1 string; interfaces_deleted=2 uint32",
  ListSwitchHealthReportsRequest:        "switch_id=1 optional common.SwitchId",
  InsertSwitchHealthReportRequest:       "switch_id=1 common.SwitchId; health_report_entry=2 HealthReportEntry",
  RemoveSwitchHealthReportRequest:       "switch_id=1 common.SwitchId; source=2 string",
  SwitchStateHistoriesRequest:           "switch_ids=1 repeated common.SwitchId",
  SwitchMetadataUpdateRequest:           "switch_id=1 common.SwitchId; if_version_match=2 optional string; metadata=3 Metadata",
  Switch:                                "id=1 common.SwitchId; config=2 SwitchConfig; status=3 SwitchStatus; deleted=4 optional google.protobuf.Timestamp; controller_state=5 string; bmc_info=6 BmcInfo; state_version=7 string; metadata=8 Metadata; version=9 string; rack_id=10 optional common.RackId; placement_in_rack=11 optional PlacementInRack; is_primary=14 bool; reserved 12, 13",
  SwitchConfig:                          "name=1 string; enable_nmxc=2 bool; fabric_manager_config=3 FabricManagerConfig; reserved 4",
  SwitchStatus:                          "state_reason=1 optional ControllerStateReason; state_sla=2 StateSla; switch_name=3 optional string; power_state=4 optional string; health_status=5 optional string; controller_state=6 optional string; health=7 health.HealthReport; health_sources=8 repeated HealthSourceOrigin; lifecycle=9 LifecycleStatus; fabric_manager_status=10 optional string; fabric_manager_status_details=11 optional FabricManagerStatus",
  FabricManagerConfig:                   "config_map=1 map<string, string>",
  FabricManagerStatus:                   "fabric_manager_state=1 FabricManagerState; addition_info=2 optional string; reason=3 optional string; error_message=4 optional string",
  FabricManagerState:                    "FABRIC_MANAGER_STATE_UNSPECIFIED=0, FABRIC_MANAGER_STATE_OK=1, FABRIC_MANAGER_STATE_NOT_OK=2, FABRIC_MANAGER_STATE_UNKNOWN=3",
};
