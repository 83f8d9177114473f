import type { MessageInitShape } from "@bufbuild/protobuf";
import { FabricManagerState, type SwitchSchema } from "../../../contract/forge/switch_pb.js";
import { metadataVersionOf, versionText } from "../../services/device/metadata.ts";
import type { SwitchRecord, SwitchView } from "../../services/switch/switches.ts";
import { timestampOf } from "../convert/fields.ts";
import { metadataOf } from "../convert/metadata.ts";
import { bmcInfoOf, deviceStatusOf } from "./device-messages.ts";
import { switchStateJson } from "./switch-state.ts";

type Fabric = NonNullable<SwitchRecord["facts"]["fabric"]>;

const FABRIC_STATES = {
  ok: FabricManagerState.OK,
  not_ok: FabricManagerState.NOT_OK,
  unknown: FabricManagerState.UNKNOWN,
} as const satisfies Record<Fabric["state"], FabricManagerState>;

export function forgeSwitchOf(view: SwitchView): MessageInitShape<typeof SwitchSchema> {
  const { device } = view;
  const { name: state, ...carried } = device.state;
  const controllerState = JSON.stringify(switchStateJson(state, carried));
  const { slotNumber, trayIndex, isPrimary, fabric } = device.facts;
  return {
    id: { id: device.id },
    config: { name: device.name, enableNmxc: device.enableNmxc },
    status: {
      switchName: device.name,
      ...deviceStatusOf(view, device, controllerState),
      ...(fabric && { fabricManagerStatus: fabric.state, fabricManagerStatusDetails: fabricOf(fabric) }),
    },
    deleted: timestampOf(device.deletedAt),
    controllerState,
    bmcInfo: bmcInfoOf(device),
    stateVersion: versionText(device.stateVersion, device.stateSince),
    metadata: metadataOf(device),
    version: metadataVersionOf(device),
    ...(device.rackId !== null && { rackId: { id: device.rackId } }),
    ...((slotNumber !== null || trayIndex !== null) && {
      placementInRack: {
        ...(slotNumber !== null && { slotNumber }),
        ...(trayIndex !== null && { trayIndex }),
      },
    }),
    isPrimary,
  };
}

const fabricOf = ({ state, additionInfo, reason, error }: Fabric) => ({
  fabricManagerState: FABRIC_STATES[state],
  ...(additionInfo !== null && { additionInfo }),
  ...(reason !== null && { reason }),
  ...(error !== null && { errorMessage: error }),
});
