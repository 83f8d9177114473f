import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { RackFirmwareSchema, RackFirmwareService } from "../../../../contract/millwright/v1/rack_firmware_pb.js";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import { downloadRackFirmware, getRackFirmware, listFirmware } from "../../../services/rack-firmware/rack-firmware.ts";
import type { FirmwareView } from "../../../services/rack-firmware/view.ts";
import { nonEmpty, timestampOf } from "../../convert/fields.ts";
import { callerKey } from "../../transport/interceptors.ts";

const firmwareOf = (firmware: FirmwareView): MessageInitShape<typeof RackFirmwareSchema> => ({
  id: firmware.id,
  hardwareType: firmware.hardwareType,
  isDefault: firmware.isDefault,
  state: firmware.state.name,
  reason: firmware.reason,
  components: firmware.components.map(({ order: _, bytes, ...component }) => ({
    ...component,
    targets: [...component.targets],
    bytes: BigInt(bytes),
    url: firmware.fileOf(component.digest)?.url ?? "",
  })),
  createdAt: timestampOf(firmware.createdAt),
  updatedAt: timestampOf(firmware.updatedAt),
  stateSince: timestampOf(firmware.stateSince),
});

export const rackFirmware = (deps: ServiceDeps): ServiceImpl<typeof RackFirmwareService> => ({
  async listRackFirmware({ hardwareType: type, onlyAvailable }) {
    const hardwareType = nonEmpty(type);
    const filter = { onlyAvailable, ...(hardwareType !== undefined && { hardwareType }) };
    return { rackFirmware: (await listFirmware(deps, filter)).map(firmwareOf) };
  },
  async getRackFirmware({ id }) {
    return { rackFirmware: firmwareOf(await getRackFirmware(deps, id)) };
  },
  async downloadRackFirmware({ id }, { values }) {
    await downloadRackFirmware(deps, values.get(callerKey), id);
    return {};
  },
});
