import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type BmcInfoSchema,
  DeletedFilter,
  type LifecycleStatusSchema,
  ControllerStateOutcome as Outcome,
  type StateHistoriesSchema,
} from "../../../contract/forge/shared_pb.js";
import type { HealthReportSchema } from "../../../contract/health/health_pb.js";
import type { Json, JsonObject } from "../../kernel/lifecycle.ts";
import type { StateRecord } from "../../services/device/histories.ts";
import { versionText } from "../../services/device/metadata.ts";
import type { DeviceRecord, DeviceStanding, LastPass } from "../../services/device/standing.ts";
import { durationOf, timestampOf, wordFor } from "../convert/fields.ts";
import { healthReportOf, WIRE_MODES } from "../convert/health.ts";
import { jsonbText } from "./state-messages.ts";

const DELETED = {
  [DeletedFilter.EXCLUDE]: "exclude",
  [DeletedFilter.ONLY]: "only",
  [DeletedFilter.INCLUDE]: "include",
} as const satisfies Record<DeletedFilter, string>;

const deletedFrom = (deleted: number) => wordFor<(typeof DELETED)[DeletedFilter]>(DELETED, deleted, "deleted");

/** No device is ever in it: a filter for a state that we do not have finds none. */
const NO_STATE = "(none)";

/** What the contract's filters of devices have in common. */
export const searchFrom = (
  { rackId, deleted, controllerState, bmcMac }: Search,
  stateForWord: (word: string) => string | undefined,
) => ({
  deleted: deletedFrom(deleted),
  ...(rackId !== undefined && { rackId: rackId.id }),
  ...(controllerState !== undefined && { state: stateForWord(controllerState) ?? NO_STATE }),
  ...(bmcMac !== undefined && { bmcMac }),
});
interface Search {
  readonly rackId?: { readonly id: string } | undefined;
  readonly deleted: number;
  readonly controllerState?: string | undefined;
  readonly bmcMac?: string | undefined;
}

export const OUTCOMES = {
  waiting: Outcome.WAIT,
  failed: Outcome.ERROR,
  moved: Outcome.TRANSITION,
  resting: Outcome.DO_NOTHING,
} as const satisfies Record<LastPass, Outcome>;

type Passes = Pick<DeviceStanding, "lastPass" | "reason" | "sla" | "aboveSla">;

/** State, reason and SLA in one place; `state` is the JSON text of the state. */
export function lifecycleOf(
  passes: Passes,
  { stateVersion, stateSince }: Pick<DeviceRecord, "stateVersion" | "stateSince">,
  state: string,
) {
  const { lastPass, reason, sla, aboveSla } = passes;
  return {
    state,
    version: versionText(stateVersion, stateSince),
    stateReason: { outcome: OUTCOMES[lastPass], ...(reason !== "" && { outcomeMsg: reason }) },
    sla: { sla: durationOf(sla), timeInStateAboveSla: aboveSla },
  } satisfies MessageInitShape<typeof LifecycleStatusSchema>;
}

export const mergedHealthOf = ({
  health,
}: Pick<DeviceStanding, "health">): {
  health: MessageInitShape<typeof HealthReportSchema>;
  healthSources: { source: string; mode: (typeof WIRE_MODES)[keyof typeof WIRE_MODES] }[];
} => ({
  health: healthReportOf(health.report),
  healthSources: health.sources.map(({ source, mode }) => ({ source, mode: WIRE_MODES[mode] })),
});

/** What the status of every device with a BMC has. */
export function deviceStatusOf(standing: DeviceStanding, device: DeviceRecord, controllerState: string) {
  const lifecycle = lifecycleOf(standing, device, controllerState);
  const { powerState, health: healthStatus } = device.facts;
  return {
    stateReason: lifecycle.stateReason,
    stateSla: lifecycle.sla,
    controllerState,
    ...(powerState !== null && { powerState }),
    ...(healthStatus !== null && { healthStatus }),
    ...mergedHealthOf(standing),
    lifecycle,
  };
}

export const bmcInfoOf = ({ bmc, facts }: DeviceRecord): MessageInitShape<typeof BmcInfoSchema> => ({
  ip: bmc.address,
  mac: bmc.mac,
  port: bmc.port,
  ...(facts.bmcFirmware !== null && { firmwareVersion: facts.bmcFirmware }),
});

/** How the contract writes a state of one kind, as JSON. */
export type StateJson = (name: string, carried: { readonly [key: string]: Json | undefined }) => JsonObject;

export const stateHistoriesOf = (
  histories: ReadonlyMap<string, readonly StateRecord[]>,
  stateJson: StateJson,
): MessageInitShape<typeof StateHistoriesSchema> => ({
  histories: Object.fromEntries(
    [...histories].map(([id, records]) => [
      id,
      {
        records: records.map(({ state, carried, stateVersion, at }) => ({
          state: jsonbText(stateJson(state, carried)),
          version: versionText(stateVersion, at),
          time: timestampOf(at),
        })),
      },
    ]),
  ),
});
