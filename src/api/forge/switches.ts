import type { ServiceImpl } from "@connectrpc/connect";
import type { Forge } from "../../../contract/forge/forge_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import {
  deleteSwitch,
  findSwitches,
  findSwitchesByIds,
  forceDeleteSwitch,
  searchSwitchIds,
  viewSwitches,
} from "../../services/switch/switches.ts";
import { required } from "../convert/fields.ts";
import { searchFrom } from "./device-messages.ts";
import { callerOf, forgeDevice, idsOf } from "./device-methods.ts";
import { forgeSwitchOf } from "./switch-messages.ts";
import { switchStateForWord, switchStateJson } from "./switch-state.ts";

export const forgeSwitches = (deps: ServiceDeps) => {
  const device = forgeDevice(deps, "switch", "switch_id", switchStateJson);
  return {
    async findSwitches({ switchId, name }) {
      const query = { ...(switchId && { id: switchId.id }), ...(name !== undefined && { name }) };
      return { switches: (await viewSwitches(deps, await findSwitches(deps, query))).map(forgeSwitchOf) };
    },
    async findSwitchIds(filter) {
      const { nvosMac, onlyWithHealthAlert: alert } = filter;
      const ids = await searchSwitchIds(deps, {
        ...searchFrom(filter, switchStateForWord),
        ...(nvosMac !== undefined && { nvosMac }),
        ...(alert !== undefined && { alert }),
      });
      return { ids: ids.map((id) => ({ id })) };
    },
    async findSwitchesByIds({ switchIds }) {
      const found = await findSwitchesByIds(deps, idsOf(switchIds));
      return { switches: (await viewSwitches(deps, found)).map(forgeSwitchOf) };
    },
    async deleteSwitch({ id }, context) {
      await deleteSwitch(deps, callerOf(context), required(id, "id").id);
      return {};
    },
    async adminForceDeleteSwitch({ switchId, deleteInterfaces }, context) {
      const { id } = required(switchId, "switch_id");
      const interfaces = await forceDeleteSwitch(deps, callerOf(context), id);
      return { switchId: id, interfacesDeleted: deleteInterfaces ? interfaces : 0 };
    },
    listSwitchHealthReports: ({ switchId }) => device.listReports(switchId),
    insertSwitchHealthReport: ({ switchId, healthReportEntry }, context) =>
      device.insertReport(switchId, healthReportEntry, context),
    removeSwitchHealthReport: ({ switchId, source }, context) => device.removeReport(switchId, source, context),
    findSwitchStateHistories: ({ switchIds }) => device.histories(switchIds),
    updateSwitchMetadata: ({ switchId, ...change }, context) => device.updateMetadata(switchId, change, context),
  } satisfies Partial<ServiceImpl<typeof Forge>>;
};
