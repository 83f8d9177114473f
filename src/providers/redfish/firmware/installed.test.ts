import { expect, test } from "vitest";
import { describeInstalled } from "./installed.ts";

test.each([
  ["FW_BMC_0", "", "bmc"],
  ["HGX_FW_ERoT_BMC_0", "", "erot"],
  ["HGX_FW_CPLD_0", "", "cpld"],
  ["UEFI", "", "bios"],
  ["HostBIOS", "", "bios"],
  ["4f1a", "BMC Firmware", "bmc"],
  ["PSU3", "Power supply behind the BMC", "psu"],
  ["NVOS", "", "nvos"],
  ["HGX_FW_GPU_0", "GPU", "hgx_fw_gpu_0"],
])("firmware %s, called %j, is that of %s", (Id, Name, component) => {
  expect(describeInstalled(`/redfish/v1/UpdateService/FirmwareInventory/${Id}`, { Id, Name })).toMatchObject({
    component,
    version: null,
    updateable: true,
  });
});
