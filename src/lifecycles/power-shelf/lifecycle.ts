import {
  ANY,
  asked,
  defineLifecycle,
  GONE,
  type Happening,
  isJsonObject,
  type JsonObject,
  on,
  onFailure,
  STAY,
  when,
} from "../../kernel/lifecycle.ts";
import { minutes } from "../../kernel/time/duration.ts";
import type { PowerShelf } from "./power-shelf.ts";

const processed = () => true;
const markedForDeletion = (shelf: PowerShelf) => shelf.deletedAt !== null;
const maintenanceRequested = (shelf: PowerShelf) => shelf.maintenanceRequest !== null;

/** Somebody began to use a tray of its rack between the request and its turn. */
const cameIntoUse = ({ maintenanceRequest, outcome }: PowerShelf) =>
  maintenanceRequest !== null && outcome?.cause?.code === "in_use";

const request = ({ maintenanceRequest }: PowerShelf): JsonObject => {
  if (!maintenanceRequest) return {};
  const { id, operation, initiator, requestedAt, traceparent, origin } = maintenanceRequest;
  const asked = { id, operation, initiator, requested_at: requestedAt.toISOString() };
  const optional = { ...(traceparent !== undefined && { traceparent }), ...(origin && { origin }) };
  return { operation, request: { ...asked, ...optional } };
};
/** Why it was in error is kept, so that a cancel leads back there. */
const requestInError = (shelf: PowerShelf): JsonObject => {
  const { cause = "unknown", failure } = shelf.state;
  return { ...request(shelf), error: { cause, ...(failure !== undefined && { failure }) } };
};
const wasInError = ({ state }: PowerShelf): boolean => state.error !== undefined;
const errorBefore = ({ state }: PowerShelf): JsonObject => (isJsonObject(state.error) ? state.error : {});
const cause = (_: PowerShelf, { message, cause: code }: Happening): JsonObject => ({
  cause: message ?? "unknown",
  ...(code && { failure: code }),
});
const itsRequest = { field: "maintenanceRequest", carried: (shelf: PowerShelf) => shelf.state.request } as const; // a newer one stays

/** Whoever waits for the request learns that it will not be carried out. */
const unheard = { withdraws: ["maintenanceRequest"] } as const;

const IN_USE = "a request that spares trays in use ends when one of them came into use before its turn";
const beforeReady = "a shelf that cannot be read can still be removed";

/**
 * The table of docs/specs/power-shelf.md, "Transitions".
 *
 * A request is cleared on success and on failure alike, so that a failing operation cannot loop between error and
 * maintenance: the operator must ask again.
 */
export const powerShelfLifecycle = defineLifecycle<PowerShelf>()({
  kind: "power_shelf",
  initial: "initializing",
  quietFacts: ["sensors", "observedAt", "deviceLog", "deviceLogReadAt", "commandedAt"],

  // biome-ignore format: a table is read by its columns
  states: {
    initializing:  { sla: minutes(5), doc: "The record exists; awaiting the controller's first look." },
    fetching_data: { sla: minutes(5), doc: "Reading identity, firmware, power supplies and power state from the BMC / PMC." },
    configuring:   { sla: minutes(5), doc: "Checking credentials and registering monitoring." },
    ready:         { rest: true,      doc: "In use and monitored; may be deleted or put into maintenance." },
    maintenance:   { sla: minutes(5), deadline: minutes(4), claims: true, doc: "Carrying out the power operation that an operator asked for, until the shelf is seen to have obeyed." },
    error:         { rest: true, trouble: true, doc: "An operation failed. A new request or a deletion leads out." },
    deleting:      { sla: minutes(5), doc: "Being removed." },
  },

  // biome-ignore format: a table is read by its columns
  transitions: [
    // from           trigger                        to
    ["initializing",  when(markedForDeletion),       "deleting",    { ...unheard, added: beforeReady }],
    ["initializing",  when(processed),               "fetching_data"],
    ["fetching_data", when(markedForDeletion),       "deleting",    { ...unheard, added: beforeReady }],
    ["fetching_data", on("data_fetched"),            "configuring"],
    ["configuring",   when(markedForDeletion),       "deleting",    { ...unheard, added: beforeReady }],
    ["configuring",   on("configured"),              "ready"],
    ["ready",         when(markedForDeletion),       "deleting",    unheard],
    ["ready",         when(cameIntoUse),             STAY,          { refuses: ["maintenanceRequest"], added: IN_USE }],
    ["ready",         when(maintenanceRequested),    "maintenance", { carries: request }],
    ["maintenance",   on("operation_completed"),     "ready",       { clears: [itsRequest] }],
    ["maintenance",   on("operation_canceled"),      "error",       { provided: wasInError, clears: [itsRequest], clearedAs: "withdrawn", carries: errorBefore, added: "a canceled request mends nothing: a shelf that was in error is there again" }],
    ["maintenance",   on("operation_canceled"),      "ready",       { clears: [itsRequest], clearedAs: "withdrawn", added: "an operator may cancel a request that is being carried out" }],
    ["maintenance",   onFailure("operation_failed"), "error",       { clears: [itsRequest], carries: cause }],
    ["error",         when(markedForDeletion),       "deleting",    unheard],
    ["error",         when(cameIntoUse),             STAY,          { refuses: ["maintenanceRequest"], added: IN_USE }],
    ["error",         when(maintenanceRequested),    "maintenance", { carries: requestInError, added: "a fresh request is the operator's manual intervention" }],
    ["deleting",      on("removed"),                 GONE,          unheard],
    [ANY,             asked("force_delete"),         GONE,          { ...unheard, added: "AdminForceDeletePowerShelf removes the record at once, whatever it is doing" }],
  ],
});

export type PowerShelfState = keyof typeof powerShelfLifecycle.states;
