import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { MachineIdList } from "../../../contract/common/common_pb.js";
import { SystemPowerControl } from "../../../contract/common/common_pb.js";
import {
  ComponentManagerStatusCode,
  ComputeTrayComponent,
  FirmwareUpdateState,
  NvSwitchComponent,
  PowerShelfComponent,
  type UpdateComponentFirmwareRequest,
} from "../../../contract/forge/component_pb.js";
import type { PowerShelfIdList, RackIdList, SwitchIdList } from "../../../contract/forge/shared_pb.js";
import { wrongField } from "../../kernel/errors.ts";
import type { ComponentTarget } from "../../services/component/component-ids.ts";
import type { FirmwareState, FirmwareStatus } from "../../services/component/firmware-status.ts";
import type { AvailableVersions } from "../../services/component/firmware-versions.ts";
import type { PowerAction } from "../../services/component/power-control.ts";
import type { ComponentOutcome, ComponentStatus } from "../../services/component/results.ts";
import type { UpdateComponentFirmware } from "../../services/component/update-firmware.ts";
import { required, wordFor } from "../convert/fields.ts";

const STATUSES = {
  success: ComponentManagerStatusCode.SUCCESS,
  invalid_argument: ComponentManagerStatusCode.INVALID_ARGUMENT,
  internal_error: ComponentManagerStatusCode.INTERNAL_ERROR,
  not_found: ComponentManagerStatusCode.NOT_FOUND,
  already_exists: ComponentManagerStatusCode.ALREADY_EXISTS,
  unavailable: ComponentManagerStatusCode.UNAVAILABLE,
} as const satisfies Record<ComponentStatus, ComponentManagerStatusCode>;

const STATES = {
  unknown: FirmwareUpdateState.FW_STATE_UNKNOWN,
  queued: FirmwareUpdateState.FW_STATE_QUEUED,
  in_progress: FirmwareUpdateState.FW_STATE_IN_PROGRESS,
  verifying: FirmwareUpdateState.FW_STATE_VERIFYING,
  completed: FirmwareUpdateState.FW_STATE_COMPLETED,
  failed: FirmwareUpdateState.FW_STATE_FAILED,
  cancelled: FirmwareUpdateState.FW_STATE_CANCELLED,
} as const satisfies Record<FirmwareState, FirmwareUpdateState>;

const POWER: Readonly<Record<number, PowerAction>> = {
  [SystemPowerControl.ON]: "on",
  [SystemPowerControl.GRACEFUL_SHUTDOWN]: "graceful_shutdown",
  [SystemPowerControl.FORCE_OFF]: "force_off",
  [SystemPowerControl.GRACEFUL_RESTART]: "graceful_restart",
  [SystemPowerControl.FORCE_RESTART]: "force_restart",
  [SystemPowerControl.AC_POWERCYCLE]: "ac_powercycle",
};
export const powerActionFrom = (action: SystemPowerControl): PowerAction => wordFor(POWER, action, "action");

/** The words of components are the names of the enum, in lower case. */
const wordsOf = (members: Readonly<Record<string, string | number>>): Readonly<Record<number, string>> =>
  Object.fromEntries(
    Object.entries(members).flatMap(([name, number]) =>
      typeof number === "number" && number !== 0 ? [[number, name.toLowerCase()]] : [],
    ),
  );
const COMPUTE_WORDS = wordsOf(ComputeTrayComponent);
const SWITCH_WORDS = wordsOf(NvSwitchComponent);
const SHELF_WORDS = wordsOf(PowerShelfComponent);
/** Existing clients send 0 for switches and shelves where they mean nothing by it. */
const known = (numbers: readonly number[]): readonly number[] => numbers.filter((number) => number !== 0);

interface IdLists {
  readonly case: string | undefined;
  readonly value?: MachineIdList | SwitchIdList | PowerShelfIdList | RackIdList | undefined;
}
const idsOf = (list: IdLists["value"]): string[] => {
  if (list === undefined) return [];
  const ids = "machineIds" in list ? list.machineIds : "rackIds" in list ? list.rackIds : list.ids;
  return ids.map(({ id }) => id);
};
const KINDS = { machineIds: "machine", switchIds: "switch", powerShelfIds: "power_shelf", rackIds: "rack" } as const;

export function targetFrom<K extends keyof typeof KINDS>(target: {
  readonly case: K | undefined;
  readonly value?: IdLists["value"];
}): ComponentTarget & { readonly kind: (typeof KINDS)[K] } {
  const name = required(target.case, "target");
  return { kind: KINDS[name], ids: idsOf(target.value) };
}

export function updateFrom({ target, targetVersion }: UpdateComponentFirmwareRequest): UpdateComponentFirmware {
  switch (target.case) {
    case "computeTrays": {
      const { machineIds, components } = target.value;
      const words = components.map((each) => wordFor(COMPUTE_WORDS, each, "compute_trays.components"));
      const ids = idsOf(required(machineIds, "compute_trays.machine_ids"));
      return { kind: "machine", ids, components: words, targetVersion };
    }
    case "switches": {
      const { switchIds, components } = target.value;
      const words = known(components).map((each) => wordFor(SWITCH_WORDS, each, "switches.components"));
      return {
        kind: "switch",
        ids: idsOf(required(switchIds, "switches.switch_ids")),
        components: words,
        targetVersion,
      };
    }
    case "powerShelves": {
      const { powerShelfIds, components } = target.value;
      const words = known(components).map((each) => wordFor(SHELF_WORDS, each, "power_shelves.components"));
      const ids = idsOf(required(powerShelfIds, "power_shelves.power_shelf_ids"));
      return { kind: "power_shelf", ids, components: words, targetVersion };
    }
    case "racks":
      return {
        kind: "rack",
        ids: idsOf(required(target.value.rackIds, "racks.rack_ids")),
        components: [],
        targetVersion,
      };
    default:
      throw wrongField("target", "is required");
  }
}

export const resultOf = ({ id, status, error }: ComponentOutcome) => ({
  componentId: id,
  status: STATUSES[status],
  error,
});

export const statusOf = ({ result, state, targetVersion, updatedAt, message }: FirmwareStatus) => ({
  result: resultOf(result.error === "" && message !== "" ? { ...result, error: message } : result),
  state: STATES[state],
  targetVersion,
  ...(updatedAt && { updatedAt: timestampFromDate(updatedAt) }),
});

const COMPUTE_NUMBERS = new Map(Object.entries(COMPUTE_WORDS).map(([number, word]) => [word, Number(number)]));

export const versionsOf = ({ result, versions, ofComponents }: AvailableVersions) => ({
  result: resultOf(result),
  versions: [...versions],
  computeFwVersions: ofComponents.map((each) => ({
    component: (COMPUTE_NUMBERS.get(each.component) ?? 0) as ComputeTrayComponent,
    versions: [...each.versions],
  })),
});

/** The words of the contract for a job of a rack. */
export const JOB_STATES = {
  unknown: "UNKNOWN",
  queued: "QUEUED",
  in_progress: "RUNNING",
  verifying: "RUNNING",
  completed: "COMPLETED",
  failed: "FAILED",
  cancelled: "FAILED",
} as const satisfies Record<FirmwareState, string>;
