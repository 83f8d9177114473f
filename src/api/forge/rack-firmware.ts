import type { ServiceImpl } from "@connectrpc/connect";
import type { Forge } from "../../../contract/forge/forge_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import {
  createRackFirmware,
  deleteRackFirmware,
  getRackFirmware,
  listFirmware,
  setDefaultRackFirmware,
} from "../../services/rack-firmware/rack-firmware.ts";
import { nonEmpty, required } from "../convert/fields.ts";
import { callerKey } from "../transport/interceptors.ts";
import { forgeFirmwareOf } from "./rack-firmware-messages.ts";

export const forgeRackFirmware = (deps: ServiceDeps) =>
  ({
    async createRackFirmware({ configJson, artifactoryToken, rackHardwareType }, { values }) {
      const hardwareType = required(rackHardwareType, "rack_hardware_type").value;
      const input = { configJson, token: artifactoryToken, hardwareType };
      return forgeFirmwareOf(await createRackFirmware(deps, values.get(callerKey), input));
    },
    async getRackFirmware({ id }) {
      return forgeFirmwareOf(await getRackFirmware(deps, id));
    },
    async listRackFirmware({ onlyAvailable, rackHardwareType }) {
      const hardwareType = nonEmpty(rackHardwareType?.value ?? "");
      const filter = { onlyAvailable, ...(hardwareType !== undefined && { hardwareType }) };
      return { configs: (await listFirmware(deps, filter)).map(forgeFirmwareOf) };
    },
    async deleteRackFirmware({ id }, { values }) {
      await deleteRackFirmware(deps, values.get(callerKey), id);
      return {};
    },
    async rackFirmwareSetDefault({ firmwareId }, { values }) {
      await setDefaultRackFirmware(deps, values.get(callerKey), firmwareId);
      return {};
    },
  }) satisfies Partial<ServiceImpl<typeof Forge>>;
