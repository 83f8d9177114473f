/** Request and answer of every method. */
// biome-ignore format: a table is read by its columns
export const EXPECTED_METHODS: Readonly<Record<string, string>> = {
  AddExpectedSwitch:                 "ExpectedSwitch → google.protobuf.Empty",
  DeleteExpectedSwitch:              "ExpectedSwitchRequest → google.protobuf.Empty",
  UpdateExpectedSwitch:              "ExpectedSwitch → google.protobuf.Empty",
  GetExpectedSwitch:                 "ExpectedSwitchRequest → ExpectedSwitch",
  GetAllExpectedSwitches:            "google.protobuf.Empty → ExpectedSwitchList",
  ReplaceAllExpectedSwitches:        "ExpectedSwitchList → google.protobuf.Empty",
  DeleteAllExpectedSwitches:         "google.protobuf.Empty → google.protobuf.Empty",
  GetAllExpectedSwitchesLinked:      "google.protobuf.Empty → LinkedExpectedSwitchList",
  AddExpectedRack:                   "ExpectedRack → google.protobuf.Empty",
  DeleteExpectedRack:                "ExpectedRackRequest → google.protobuf.Empty",
  UpdateExpectedRack:                "ExpectedRack → google.protobuf.Empty",
  GetExpectedRack:                   "ExpectedRackRequest → ExpectedRack",
  GetAllExpectedRacks:               "google.protobuf.Empty → ExpectedRackList",
  ReplaceAllExpectedRacks:           "ExpectedRackList → google.protobuf.Empty",
  DeleteAllExpectedRacks:            "google.protobuf.Empty → google.protobuf.Empty",
};

/** Every field with its number, its presence and its type; then the numbers that nobody may give out again. */
// biome-ignore format: a table is read by its columns
export const EXPECTED: Readonly<Record<string, string>> = {
  ExpectedSwitch:                        "bmc_mac_address=1 string; bmc_username=2 string; bmc_password=3 string; switch_serial_number=4 string; metadata=5 Metadata; rack_id=6 optional common.RackId; nvos_username=7 optional string; nvos_password=8 optional string; expected_switch_id=9 optional common.UUID; nvos_mac_addresses=10 repeated string; bmc_ip_address=11 string; bmc_retain_credentials=12 optional bool",
  ExpectedSwitchRequest:                 "bmc_mac_address=1 string; expected_switch_id=2 optional common.UUID",
  ExpectedSwitchList:                    "expected_switches=1 repeated ExpectedSwitch",
  LinkedExpectedSwitchList:              "expected_switches=1 repeated LinkedExpectedSwitch",
  ExpectedRack:                          "rack_id=1 optional common.RackId; rack_profile_id=2 common.RackProfileId; metadata=3 Metadata",
  ExpectedRackRequest:                   "rack_id=1 string",
  ExpectedRackList:                      "expected_racks=1 repeated ExpectedRack",
  LinkedExpectedSwitch:                  "switch_serial_number=1 string; bmc_mac_address=2 string; switch_id=3 optional common.SwitchId; expected_switch_id=4 optional common.UUID; explored_endpoint_address=5 optional string; rack_id=6 optional common.RackId",
};
