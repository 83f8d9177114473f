import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  PowerShelfMaintenanceOperation as Operation,
  type PowerShelfSchema,
} from "../../../contract/forge/forge_pb.js";
import { metadataVersionOf, versionText } from "../../services/device/metadata.ts";
import type { MaintenanceOperation } from "../../services/power-shelf/power-shelves.ts";
import type { PowerShelfView } from "../../services/power-shelf/view.ts";
import { int32Of, timestampOf } from "../convert/fields.ts";
import { metadataOf } from "../convert/metadata.ts";
import { bmcInfoOf, deviceStatusOf } from "./device-messages.ts";
import { forgeStateOf } from "./state-messages.ts";

const OPERATIONS: Readonly<Record<number, MaintenanceOperation>> = {
  [Operation.POWER_ON]: "power_on",
  [Operation.POWER_OFF]: "power_off",
};

/** A number that the contract does not know counts as UNSPECIFIED, which the service refuses. */
export const operationFrom = (operation: number): MaintenanceOperation | undefined => OPERATIONS[operation];

type WireShelf = MessageInitShape<typeof PowerShelfSchema>;

export function forgePowerShelfOf(view: PowerShelfView): WireShelf {
  const { shelf } = view;
  const { name: state, ...carried } = shelf.state;
  const controllerState = JSON.stringify(forgeStateOf(state, carried));
  return {
    id: { id: shelf.id },
    config: configOf(view),
    status: { shelfName: shelf.name, ...deviceStatusOf(view, shelf, controllerState) },
    deleted: timestampOf(shelf.deletedAt),
    controllerState,
    metadata: metadataOf(shelf),
    version: metadataVersionOf(shelf),
    stateVersion: versionText(shelf.stateVersion, shelf.stateSince),
    bmcInfo: bmcInfoOf(shelf),
    ...(shelf.rackId !== null && { rackId: { id: shelf.rackId } }),
  };
}

const configOf = ({ shelf: { name, facts } }: PowerShelfView): WireShelf["config"] => {
  const [capacity, voltage] = [int32Of(facts.capacityWatts), int32Of(facts.voltage)];
  return { name, ...(capacity !== undefined && { capacity }), ...(voltage !== undefined && { voltage }) };
};
