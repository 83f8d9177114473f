/** Request and answer of every method. */
// biome-ignore format: a table is read by its columns
export const COMPONENT_METHODS: Readonly<Record<string, string>> = {
  ComponentPowerControl:             "ComponentPowerControlRequest → ComponentPowerControlResponse",
  GetComponentInventory:             "GetComponentInventoryRequest → GetComponentInventoryResponse",
  UpdateComponentFirmware:           "UpdateComponentFirmwareRequest → UpdateComponentFirmwareResponse",
  GetComponentFirmwareStatus:        "GetComponentFirmwareStatusRequest → GetComponentFirmwareStatusResponse",
  ListComponentFirmwareVersions:     "ListComponentFirmwareVersionsRequest → ListComponentFirmwareVersionsResponse",
};

/** Every field with its number, its presence and its type. The exploration report of inventories is left out. */
// biome-ignore format: a table is read by its columns
export const COMPONENT: Readonly<Record<string, string>> = {
  ComponentPowerControlRequest:            "machine_ids=1 common.MachineIdList (oneof target); switch_ids=2 SwitchIdList (oneof target); power_shelf_ids=3 PowerShelfIdList (oneof target); action=4 common.SystemPowerControl",
  ComponentPowerControlResponse:           "results=1 repeated ComponentResult",
  GetComponentInventoryRequest:            "machine_ids=1 common.MachineIdList (oneof target); switch_ids=2 SwitchIdList (oneof target); power_shelf_ids=3 PowerShelfIdList (oneof target)",
  GetComponentInventoryResponse:           "entries=1 repeated ComponentInventoryEntry",
  UpdateComponentFirmwareRequest:          "compute_trays=1 UpdateComputeTrayFirmwareTarget (oneof target); switches=2 UpdateSwitchFirmwareTarget (oneof target); power_shelves=3 UpdatePowerShelfFirmwareTarget (oneof target); racks=5 UpdateRackFirmwareTarget (oneof target); target_version=4 string",
  UpdateComponentFirmwareResponse:         "results=1 repeated ComponentResult",
  GetComponentFirmwareStatusRequest:       "machine_ids=1 common.MachineIdList (oneof target); switch_ids=2 SwitchIdList (oneof target); power_shelf_ids=3 PowerShelfIdList (oneof target); rack_ids=4 RackIdList (oneof target)",
  GetComponentFirmwareStatusResponse:      "statuses=1 repeated FirmwareUpdateStatus",
  ListComponentFirmwareVersionsRequest:    "machine_ids=1 common.MachineIdList (oneof target); switch_ids=2 SwitchIdList (oneof target); power_shelf_ids=3 PowerShelfIdList (oneof target); rack_ids=4 RackIdList (oneof target)",
  ListComponentFirmwareVersionsResponse:   "devices=1 repeated DeviceFirmwareVersions",
  ComponentResult:                         "component_id=1 string; status=2 ComponentManagerStatusCode; error=3 string",
  ComponentInventoryEntry:                 "result=1 ComponentResult; reserved 2",
  UpdateComputeTrayFirmwareTarget:         "machine_ids=1 common.MachineIdList; components=2 repeated ComputeTrayComponent",
  UpdateSwitchFirmwareTarget:              "switch_ids=1 SwitchIdList; components=2 repeated NvSwitchComponent",
  UpdatePowerShelfFirmwareTarget:          "power_shelf_ids=1 PowerShelfIdList; components=2 repeated PowerShelfComponent",
  UpdateRackFirmwareTarget:                "rack_ids=1 RackIdList",
  FirmwareUpdateStatus:                    "result=1 ComponentResult; state=2 FirmwareUpdateState; target_version=3 string; updated_at=4 google.protobuf.Timestamp",
  DeviceFirmwareVersions:                  "result=1 ComponentResult; versions=2 repeated string; compute_fw_versions=3 repeated ComputeTrayFirmwareVersions",
  ComponentManagerStatusCode:              "COMPONENT_MANAGER_STATUS_CODE_SUCCESS=0, COMPONENT_MANAGER_STATUS_CODE_INVALID_ARGUMENT=1, COMPONENT_MANAGER_STATUS_CODE_INTERNAL_ERROR=2, COMPONENT_MANAGER_STATUS_CODE_NOT_FOUND=3, COMPONENT_MANAGER_STATUS_CODE_ALREADY_EXISTS=4, COMPONENT_MANAGER_STATUS_CODE_UNAVAILABLE=5",
  ComputeTrayComponent:                    "COMPUTE_TRAY_COMPONENT_UNKNOWN=0, COMPUTE_TRAY_COMPONENT_BMC=1, COMPUTE_TRAY_COMPONENT_BIOS=2, COMPUTE_TRAY_COMPONENT_CEC=3, COMPUTE_TRAY_COMPONENT_NIC=4, COMPUTE_TRAY_COMPONENT_CPLD_MB=5, COMPUTE_TRAY_COMPONENT_CPLD_PDB=6, COMPUTE_TRAY_COMPONENT_HGX_BMC=7, COMPUTE_TRAY_COMPONENT_COMBINED_BMC_UEFI=8, COMPUTE_TRAY_COMPONENT_GPU=9, COMPUTE_TRAY_COMPONENT_CX7=10",
  NvSwitchComponent:                       "NV_SWITCH_COMPONENT_UNKNOWN=0, NV_SWITCH_COMPONENT_BMC=1, NV_SWITCH_COMPONENT_CPLD=2, NV_SWITCH_COMPONENT_BIOS=3, NV_SWITCH_COMPONENT_NVOS=4",
  PowerShelfComponent:                     "POWER_SHELF_COMPONENT_UNKNOWN=0, POWER_SHELF_COMPONENT_PMC=1, POWER_SHELF_COMPONENT_PSU=2",
  FirmwareUpdateState:                     "FW_STATE_UNKNOWN=0, FW_STATE_QUEUED=1, FW_STATE_IN_PROGRESS=2, FW_STATE_VERIFYING=3, FW_STATE_COMPLETED=4, FW_STATE_FAILED=5, FW_STATE_CANCELLED=6",
  ComputeTrayFirmwareVersions:             "component=1 ComputeTrayComponent; versions=2 repeated string",
};
