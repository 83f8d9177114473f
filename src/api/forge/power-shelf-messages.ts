import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  PowerShelfMaintenanceOperation as Operation,
  type PowerShelfSchema,
  type PowerShelfSearchFilter,
} from "../../../contract/forge/forge_pb.js";
import {
  type ControllerStateReasonSchema,
  DeletedFilter,
  ControllerStateOutcome as Outcome,
  type StateHistoriesSchema,
  type StateSlaSchema,
} from "../../../contract/forge/shared_pb.js";
import type { StateRecord } from "../../services/device/histories.ts";
import { metadataVersionOf, versionText } from "../../services/device/metadata.ts";
import type { LastPass } from "../../services/device/standing.ts";
import type { MaintenanceOperation, PowerShelfSearch } from "../../services/power-shelf/power-shelves.ts";
import type { PowerShelfView } from "../../services/power-shelf/view.ts";
import { durationOf, int32Of, timestampOf, wordFor } from "../convert/fields.ts";
import { healthReportOf, WIRE_MODES } from "../convert/health.ts";
import { metadataOf } from "../convert/metadata.ts";
import { forgeStateOf, jsonbText, stateForForgeWord } from "./state-messages.ts";

const OPERATIONS: Readonly<Record<number, MaintenanceOperation>> = {
  [Operation.POWER_ON]: "power_on",
  [Operation.POWER_OFF]: "power_off",
};

/** A number that the contract does not know counts as UNSPECIFIED, which the service refuses. */
export const operationFrom = (operation: number): MaintenanceOperation | undefined => OPERATIONS[operation];

const DELETED = {
  [DeletedFilter.EXCLUDE]: "exclude",
  [DeletedFilter.ONLY]: "only",
  [DeletedFilter.INCLUDE]: "include",
} as const satisfies Record<DeletedFilter, PowerShelfSearch["deleted"]>;

/** No shelf is ever in it: a filter for a state that we do not have finds none. */
const NO_STATE = "(none)";

export const searchFrom = ({ rackId, deleted, controllerState, bmcMac }: PowerShelfSearchFilter): PowerShelfSearch => ({
  deleted: wordFor<NonNullable<PowerShelfSearch["deleted"]>>(DELETED, deleted, "deleted"),
  ...(rackId !== undefined && { rackId: rackId.id }),
  ...(controllerState !== undefined && { state: stateForForgeWord(controllerState) ?? NO_STATE }),
  ...(bmcMac !== undefined && { bmcMac }),
});

export const OUTCOMES = {
  waiting: Outcome.WAIT,
  failed: Outcome.ERROR,
  moved: Outcome.TRANSITION,
  resting: Outcome.DO_NOTHING,
} as const satisfies Record<LastPass, Outcome>;

type WireShelf = MessageInitShape<typeof PowerShelfSchema>;

export function forgePowerShelfOf(view: PowerShelfView): WireShelf {
  const { shelf } = view;
  const { name: state, ...carried } = shelf.state;
  const controllerState = JSON.stringify(forgeStateOf(state, carried));
  return {
    id: { id: shelf.id },
    config: configOf(view),
    status: statusOf(view, controllerState),
    deleted: timestampOf(shelf.deletedAt),
    controllerState,
    metadata: metadataOf(shelf),
    version: metadataVersionOf(shelf),
    stateVersion: versionText(shelf.stateVersion, shelf.stateSince),
    bmcInfo: bmcInfoOf(view),
    ...(shelf.rackId !== null && { rackId: { id: shelf.rackId } }),
  };
}

const configOf = ({ shelf: { name, facts } }: PowerShelfView): WireShelf["config"] => {
  const [capacity, voltage] = [int32Of(facts.capacityWatts), int32Of(facts.voltage)];
  return { name, ...(capacity !== undefined && { capacity }), ...(voltage !== undefined && { voltage }) };
};

function statusOf(view: PowerShelfView, controllerState: string): WireShelf["status"] {
  const { shelf, health } = view;
  const { powerState, health: healthStatus } = shelf.facts;
  const [stateReason, sla] = [stateReasonOf(view), stateSlaOf(view)];
  return {
    stateReason,
    stateSla: sla,
    shelfName: shelf.name,
    controllerState,
    ...(powerState !== null && { powerState }),
    ...(healthStatus !== null && { healthStatus }),
    health: healthReportOf(health.report),
    healthSources: health.sources.map(({ source, mode }) => ({ source, mode: WIRE_MODES[mode] })),
    lifecycle: {
      state: controllerState,
      version: versionText(shelf.stateVersion, shelf.stateSince),
      stateReason,
      sla,
    },
  };
}

const stateReasonOf = ({ lastPass, reason }: PowerShelfView): MessageInitShape<typeof ControllerStateReasonSchema> => ({
  outcome: OUTCOMES[lastPass],
  ...(reason !== "" && { outcomeMsg: reason }),
});

const stateSlaOf = ({ sla, aboveSla }: PowerShelfView): MessageInitShape<typeof StateSlaSchema> => ({
  sla: durationOf(sla),
  timeInStateAboveSla: aboveSla,
});

const bmcInfoOf = ({ shelf: { bmc, facts } }: PowerShelfView): WireShelf["bmcInfo"] => ({
  ip: bmc.address,
  mac: bmc.mac,
  port: bmc.port,
  ...(facts.bmcFirmware !== null && { firmwareVersion: facts.bmcFirmware }),
});

export const stateHistoriesOf = (
  histories: ReadonlyMap<string, readonly StateRecord[]>,
): MessageInitShape<typeof StateHistoriesSchema> => ({
  histories: Object.fromEntries(
    [...histories].map(([id, records]) => [
      id,
      {
        records: records.map(({ state, carried, stateVersion, at }) => ({
          state: jsonbText(forgeStateOf(state, carried)),
          version: versionText(stateVersion, at),
          time: timestampOf(at),
        })),
      },
    ]),
  ),
});
