import { z } from "zod";
import { move } from "../../kernel/effects.ts";
import { parsePowerShelfId } from "../../kernel/ids.ts";
import { expectedPowerShelfLifecycle } from "../../lifecycles/expected-power-shelf/lifecycle.ts";
import { powerShelfLifecycle } from "../../lifecycles/power-shelf/lifecycle.ts";
import {
  type EndedRequest,
  MAINTENANCE_OPERATIONS,
  type MaintenanceRequest,
  type PowerShelf,
  type PowerShelfFacts,
  REQUEST_OUTCOMES,
} from "../../lifecycles/power-shelf/power-shelf.ts";
import { sharesBmcCredentials } from "../device/bmc-credentials.ts";
import { type BmcDeviceRecord, bmcDeviceFacts, defineBmcDevices } from "../device/bmc-devices.ts";
import { deviceTraits } from "../device/device.ts";
import { deviceAttention } from "../device/device-attention.ts";
import { hasLiveEvents } from "../device/event-streams.ts";
import { deviceOfRackPlace, partOfRack } from "../device/part-of-rack.ts";
import type { ThingStore } from "../lifecycle/things.ts";

export interface PowerShelfRecord extends PowerShelf, Omit<BmcDeviceRecord, keyof PowerShelf> {
  readonly lastMaintenanceRequest: EndedRequest | null;
}

const factsSchema = z.object({
  ...bmcDeviceFacts,
  capacityWatts: z.number().nullable().default(null),
  voltage: z.number().nullable().default(null),
  powerSupplies: z
    .array(
      z.object({
        name: z.string(),
        serial: z.string().nullable(),
        firmware: z.string().nullable(),
        on: z.boolean().nullable(),
        health: z.enum(["ok", "warning", "critical"]).nullable(),
      }),
    )
    .default([]),
  commandedAt: z
    .object({ operation: z.string().nullable(), requestId: z.string().nullable(), at: z.string() })
    .nullable()
    .default(null),
  cancelRequest: z.object({ requestId: z.string(), by: z.string(), at: z.string() }).nullable().default(null),
});

const requestSchema = z
  .object({
    id: z.string(),
    operation: z.enum(MAINTENANCE_OPERATIONS),
    initiator: z.string(),
    requested_at: z.coerce.date(),
    traceparent: z.string().optional(),
    origin: z.object({ kind: z.string(), id: z.string() }).optional(),
    unless_in_use: z.boolean().optional(),
  })
  .transform(
    ({ requested_at, unless_in_use, ...rest }): MaintenanceRequest => ({
      ...rest,
      requestedAt: requested_at,
      ...(unless_in_use && { unlessInUse: true }),
    }),
  );
const endedSchema = z
  .object({
    id: z.string(),
    operation: z.enum(MAINTENANCE_OPERATIONS),
    initiator: z.string(),
    requested_at: z.coerce.date(),
    traceparent: z.string().optional(),
    origin: z.object({ kind: z.string(), id: z.string() }).optional(),
    outcome: z.enum(REQUEST_OUTCOMES),
    ended_at: z.coerce.date(),
    message: z.string().nullable().default(null),
  })
  .transform(
    ({ requested_at, ended_at, ...rest }): EndedRequest => ({ ...rest, requestedAt: requested_at, endedAt: ended_at }),
  );

export const powerShelves = defineBmcDevices<PowerShelf, PowerShelfRecord>({
  kind: powerShelfLifecycle.kind,
  table: "power_shelves",
  expected: { table: "expected_power_shelves", link: "powerShelfId" },
  columns: ["t.power_shelf_maintenance_requested", `${hasLiveEvents("power_shelf", "t.id")} as has_events`],
  recordColumns: ["t.last_maintenance_request"],
  blank: { power_shelf_maintenance_requested: null, last_maintenance_request: null },
  parse: (row, shared) => ({
    ...shared,
    id: parsePowerShelfId(row.id, "id"),
    facts: factsSchema.parse(row.facts) satisfies PowerShelfFacts,
    maintenanceRequest: requestSchema.nullable().parse(row["power_shelf_maintenance_requested"]),
    hasEvents: row["has_events"] === true,
  }),
  parseRecord: (row, shared) => ({
    ...shared,
    lastMaintenanceRequest: endedSchema.nullable().parse(row["last_maintenance_request"]),
  }),
});
export const { list: listPowerShelves, findOfBmcs: findShelvesOfBmcs } = powerShelves;

export const powerShelfTraits = deviceTraits<PowerShelfRecord>({
  noun: "power shelf",
  command: "power-shelf",
  parseId: parsePowerShelfId,
  list: (db, ids) => listPowerShelves(db, { ids }),
  metadataOf: (shelf) => shelf,
  deletion: {
    moves: ({ expectedId }) =>
      expectedId === null ? [] : [move(expectedPowerShelfLifecycle, expectedId, "power_shelf_deleted")],
  },
});

export const powerShelfStore: ThingStore<PowerShelf> = {
  lifecycle: powerShelfLifecycle,
  table: "power_shelves",
  rackSql: "t.rack_id",
  place: deviceOfRackPlace("power_shelves"),
  requests: {
    maintenanceRequest: { column: "power_shelf_maintenance_requested", lastColumn: "last_maintenance_request" },
  },
  ...sharesBmcCredentials,
  replacedFacts: { certificateFingerprint: "certificate_replaced" },
  device: powerShelfTraits,
  attention: deviceAttention,
  claims({ id, rackId, maintenanceRequest }) {
    const itself = { kind: powerShelfLifecycle.kind, id };
    const isSparing = rackId !== null && maintenanceRequest?.unlessInUse === true;
    return { targets: [itself], holder: itself, ...(isSparing && { unused: [{ kind: "rack", id: rackId }] }) };
  },
  ...partOfRack,
  load: powerShelves.load,
  // When it is removed, the expected shelf that it is linked to counts, which may have changed meanwhile.
  entersUnloaded: ["fetching_data", "configuring", "ready", "maintenance", "error"],
};
