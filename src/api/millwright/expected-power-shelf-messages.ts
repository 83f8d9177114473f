import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type ExpectedPowerShelfSchema,
  ExploreState,
  type ListExpectedPowerShelvesRequest,
} from "../../../contract/millwright/v1/power_shelf_pb.js";
import type { Caller } from "../../services/call/caller.ts";
import type { ExpectedQuery, ExploreResult } from "../../services/expected-device/expected-devices.ts";
import type { ExpectedPowerShelfRecord } from "../../services/expected-power-shelf/expected-power-shelves.ts";
import { endpointText } from "../convert/bmc-endpoint.ts";
import { nonEmpty, timestampOf, wordFor } from "../convert/fields.ts";
import { listRequestFrom } from "../convert/listing.ts";
import { labelMapOf } from "../convert/metadata.ts";

export const EXPLORE_STATES = {
  pending: ExploreState.PENDING,
  linked: ExploreState.LINKED,
  unreachable: ExploreState.UNREACHABLE,
  wrong_credentials: ExploreState.WRONG_CREDENTIALS,
  wrong_serial: ExploreState.WRONG_SERIAL,
  duplicate: ExploreState.FAILED,
  failed: ExploreState.FAILED,
  detached: ExploreState.DETACHED,
} as const satisfies Record<ExploreResult, ExploreState>;

const EXPLORE_RESULTS = {
  [ExploreState.UNSPECIFIED]: "any",
  [ExploreState.PENDING]: ["pending"],
  [ExploreState.LINKED]: ["linked"],
  [ExploreState.UNREACHABLE]: ["unreachable"],
  [ExploreState.WRONG_CREDENTIALS]: ["wrong_credentials"],
  [ExploreState.WRONG_SERIAL]: ["wrong_serial"],
  [ExploreState.DETACHED]: ["detached"],
  [ExploreState.FAILED]: ["failed", "duplicate"],
} as const satisfies Record<ExploreState, readonly ExploreResult[] | "any">;

export function exploreResultsFrom(state: number, field: string): readonly ExploreResult[] | undefined {
  const results = wordFor<readonly ExploreResult[] | "any">(EXPLORE_RESULTS, state, field);
  return results === "any" ? undefined : results;
}

export const expectedQueryFrom = (message: ListExpectedPowerShelvesRequest, caller: Caller): ExpectedQuery => ({
  ...listRequestFrom(message, caller),
  rackId: nonEmpty(message.rackId),
  bmcMac: nonEmpty(message.bmcMac),
  deviceId: nonEmpty(message.powerShelfId),
  explored: exploreResultsFrom(message.exploreState, "explore_state"),
});

export const expectedOf = (row: ExpectedPowerShelfRecord): MessageInitShape<typeof ExpectedPowerShelfSchema> => ({
  id: row.id,
  bmcMac: row.bmc.mac,
  bmcEndpoint: endpointText(row.bmc),
  bmcUsername: row.bmcUsername,
  serial: row.serial,
  name: row.name,
  description: row.description,
  labels: labelMapOf(row.labels),
  rackId: row.rackId ?? "",
  retainCredentials: row.retainCredentials,
  powerShelfId: row.state.name === "linked" ? (row.deviceId ?? "") : "",
  exploreState: EXPLORE_STATES[row.explored],
  exploreMessage: row.lastError ?? row.outcome?.reason ?? "",
  exploredAt: timestampOf(row.facts.exploredAt === null ? null : new Date(row.facts.exploredAt)),
  nextExploreAt: timestampOf(row.state.name === "exploring" ? row.nextExploreAt : null),
});
