import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type CreatePowerShelfRequest,
  DeletedShelves,
  type ListPowerShelvesRequest,
  type MaintenanceRequestSchema,
  type PowerShelfSchema,
  TlsTrustMode,
} from "../../../contract/millwright/v1/power_shelf_pb.js";
import type { Caller } from "../../services/call/caller.ts";
import type { CreatePowerShelf } from "../../services/power-shelf/power-shelves.ts";
import type { PowerShelfQuery, PowerShelfRecord, PowerShelfView } from "../../services/power-shelf/view.ts";
import { int32Of, nonEmpty, timestampOf, wordFor } from "../convert/fields.ts";
import { listRequestFrom } from "../convert/listing.ts";
import { deviceOf } from "./device-messages.ts";

type Trust = CreatePowerShelf["trust"];

const TRUST = {
  [TlsTrustMode.UNSPECIFIED]: "pin",
  [TlsTrustMode.CA]: "ca",
  [TlsTrustMode.PIN]: "pin",
  [TlsTrustMode.OFF]: "off",
} as const satisfies Record<TlsTrustMode, Trust>;

export const createPowerShelfFrom = (message: CreatePowerShelfRequest): CreatePowerShelf => ({
  id: nonEmpty(message.id),
  name: message.name,
  rackId: nonEmpty(message.rackId),
  bmcEndpoint: message.bmcEndpoint,
  bmcMac: message.bmcMac,
  bmcUsername: message.bmcUsername,
  bmcPassword: message.bmcPassword,
  bmcScheme: message.bmcScheme,
  trust: wordFor<Trust>(TRUST, message.tlsTrust, "tls_trust"),
  requestId: nonEmpty(message.requestId),
});

type Deleted = PowerShelfQuery["deleted"];
const DELETED = {
  [DeletedShelves.UNSPECIFIED]: "by_filter",
  [DeletedShelves.EXCLUDE]: "exclude",
  [DeletedShelves.ONLY]: "only",
  [DeletedShelves.INCLUDE]: "include",
} as const satisfies Record<DeletedShelves, NonNullable<Deleted> | "by_filter">;

function deletedFrom(which: DeletedShelves): Deleted {
  const word = wordFor<NonNullable<Deleted> | "by_filter">(DELETED, which, "deleted");
  return word === "by_filter" ? undefined : word;
}

export const powerShelfQueryFrom = (message: ListPowerShelvesRequest, caller: Caller): PowerShelfQuery => ({
  ...listRequestFrom(message, caller),
  rackId: nonEmpty(message.rackId),
  state: nonEmpty(message.state),
  powerState: nonEmpty(message.powerState),
  stuckOnly: message.stuckOnly,
  failingOnly: message.failingOnly,
  deleted: deletedFrom(message.deleted),
  bmcMac: nonEmpty(message.bmcMac),
});

type WireShelf = MessageInitShape<typeof PowerShelfSchema>;

export const powerShelfOf = (view: PowerShelfView): WireShelf => ({
  ...deviceOf(view.shelf, view),
  ...requestsOf(view.shelf),
  ...partsOf(view.shelf),
});

function requestsOf({ maintenanceRequest: pending, lastMaintenanceRequest: last }: PowerShelfRecord) {
  type WireRequest = MessageInitShape<typeof MaintenanceRequestSchema>;
  const asked = ({ id, operation, initiator, requestedAt }: NonNullable<typeof pending>): WireRequest => ({
    id,
    operation,
    initiator,
    requestedAt: timestampOf(requestedAt),
  });
  return {
    ...(pending && { pendingRequest: asked(pending) }),
    ...(last && {
      lastRequest: {
        ...asked(last),
        outcome: last.outcome,
        endedAt: timestampOf(last.endedAt),
        message: last.message ?? "",
      },
    }),
  } satisfies WireShelf;
}

function partsOf({ facts }: PowerShelfRecord) {
  const [capacityWatts, voltage] = [int32Of(facts.capacityWatts), int32Of(facts.voltage)];
  return {
    ...(capacityWatts !== undefined && { capacityWatts }),
    ...(voltage !== undefined && { voltage }),
    powerSupplies: facts.powerSupplies.map((supply) => ({
      name: supply.name,
      serial: supply.serial ?? "",
      firmwareVersion: supply.firmware ?? "",
      health: supply.health ?? "",
      ...(supply.on !== null && { on: supply.on }),
    })),
  } satisfies WireShelf;
}
