import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  DeletedSwitches,
  type ListSwitchesRequest,
  type SwitchFabricSchema,
  type SwitchSchema,
} from "../../../../contract/millwright/v1/switch_pb.js";
import type { Caller } from "../../../services/call/caller.ts";
import { nvosAddressOf, type SwitchQuery, type SwitchView } from "../../../services/switch/view.ts";
import { int32Of, nonEmpty, timestampOf, wordFor } from "../../convert/fields.ts";
import { listRequestFrom } from "../../convert/listing.ts";
import { switchStateForWord } from "../../forge/switch-state.ts";
import { deviceOf } from "../device-messages.ts";

type Deleted = NonNullable<SwitchQuery["deleted"]> | "by_filter";
const DELETED = {
  [DeletedSwitches.UNSPECIFIED]: "by_filter",
  [DeletedSwitches.EXCLUDE]: "exclude",
  [DeletedSwitches.ONLY]: "only",
  [DeletedSwitches.INCLUDE]: "include",
} as const satisfies Record<DeletedSwitches, Deleted>;

function deletedFrom(which: DeletedSwitches): SwitchQuery["deleted"] {
  const word = wordFor<Deleted>(DELETED, which, "deleted");
  return word === "by_filter" ? undefined : word;
}

export const switchQueryFrom = (message: ListSwitchesRequest, caller: Caller): SwitchQuery => ({
  ...listRequestFrom(message, caller),
  rackId: nonEmpty(message.rackId),
  state: nonEmpty(switchStateForWord(message.state) ?? message.state),
  powerState: nonEmpty(message.powerState),
  stuckOnly: message.stuckOnly,
  failingOnly: message.failingOnly,
  deleted: deletedFrom(message.deleted),
  bmcMac: nonEmpty(message.bmcMac),
  nvosMac: nonEmpty(message.nvosMac),
});

export function switchOf(view: SwitchView): MessageInitShape<typeof SwitchSchema> {
  const { device } = view;
  const { facts } = device;
  const [slotNumber, trayIndex] = [int32Of(facts.slotNumber), int32Of(facts.trayIndex)];
  return {
    ...deviceOf(device, view),
    ...(slotNumber !== undefined && { slotNumber }),
    ...(trayIndex !== undefined && { trayIndex }),
    primary: facts.isPrimary,
    enableNmxc: device.enableNmxc,
    ...(facts.fabric && { fabric: fabricOf(facts.fabric) }),
    firmware: { ...facts.firmware },
    os: {
      address: nvosAddressOf(device) ?? "",
      macs: [...device.nvosMacs],
      certificateFingerprint: facts.nvosCertificateFingerprint ?? "",
    },
  };
}

type Fabric = NonNullable<SwitchView["device"]["facts"]["fabric"]>;
const fabricOf = ({ state, additionInfo, reason, error, at }: Fabric): MessageInitShape<typeof SwitchFabricSchema> => ({
  state,
  additionInfo: additionInfo ?? "",
  reason: reason ?? "",
  error: error ?? "",
  observedAt: timestampOf(new Date(at)),
});
