import type { MessageInitShape } from "@bufbuild/protobuf";
import type { RackFirmwareSchema } from "../../../contract/forge/firmware_pb.js";
import type { FirmwareView } from "../../services/rack-firmware/view.ts";

const BOARDS = { compute: "Compute Node", switch: "Switch Tray", power_shelf: "Power Shelf" } as const;

export const forgeFirmwareOf = (firmware: FirmwareView): MessageInitShape<typeof RackFirmwareSchema> => ({
  id: firmware.id,
  configJson: firmware.config,
  available: firmware.available,
  created: firmware.createdAt.toISOString(),
  updated: firmware.updatedAt.toISOString(),
  parsedComponents: JSON.stringify({ devices: devicesOf(firmware) }),
  rackHardwareType: { value: firmware.hardwareType },
  isDefault: firmware.isDefault,
});

/** As clients of the contract look components up: by board, and then by name and class. */
function devicesOf({ components, fileOf }: FirmwareView): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  const devices: Record<string, Record<string, unknown>> = {};
  for (const each of components) {
    const board = BOARDS[each.device];
    const name = `${each.component.toUpperCase()}_${each.class}`;
    devices[board] = {
      ...devices[board],
      [name]: { filename: fileOf(each.digest)?.name ?? "", target: each.targets[0] ?? "", version: each.version },
    };
  }
  return devices;
}
