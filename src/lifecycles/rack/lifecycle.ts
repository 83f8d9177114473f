import {
  ANY,
  asked,
  caused,
  defineLifecycle,
  GONE,
  type Happening,
  type JsonObject,
  on,
  onFailure,
  STAY,
  when,
} from "../../kernel/lifecycle.ts";
import { hours, minutes } from "../../kernel/time/duration.ts";
import { reprovisionComesFirst } from "./first-request.ts";
import { failedMembers, isComplete, isDiscovered, topologyOf } from "./members.ts";
import type { ErrorOrigin, Rack, RackRequest, Trigger } from "./rack.ts";

const markedForDeletion = (rack: Rack) => rack.deletedAt !== null;
const inventoryComplete = (rack: Rack) => isComplete(rack);
const topologyChanged = (rack: Rack) => rack.facts.topology !== topologyOf(rack);
const isAskedForNothing = (rack: Rack) => rack.reprovisionRequest === null && rack.maintenanceRequest === null;
/** Only the set of an on-demand request bars others, and so has a time that can be over. In error nothing else is begun. */
const requestExpired = (rack: Rack) =>
  rack.maintenanceRequest !== null &&
  (rack.reprovisionRequest === null || rack.state.name === "error") &&
  rack.outcome?.barExpired === true;
/** A request comes first, whatever the devices are like: the maintenance may mend them. */
const componentFailed = (rack: Rack) => isAskedForNothing(rack) && failedMembers(rack).length > 0;
const componentsRecovered = (rack: Rack) => rack.state.origin === "component" && failedMembers(rack).length === 0;
const discoveryComplete = (rack: Rack) => rack.state.origin === "discovery" && isDiscovered(rack);
const neverValidated = (rack: Rack) => !rack.facts.hasValidated;

const topology = (rack: Rack): JsonObject => ({ topology: topologyOf(rack) });
const discovered = { sets: topology, carries: topology };

/** Without the lists of devices: every entry of the history would repeat them. */
const brief = ({ id, initiator, requested_at, reference, traceparent }: RackRequest): JsonObject => ({
  id,
  initiator,
  requested_at,
  ...(reference !== undefined && { reference }),
  ...(traceparent !== undefined && { traceparent }),
});
const requestOf = (rack: Rack, trigger: Trigger): RackRequest | null =>
  ({ ingestion: null, reprovision: rack.reprovisionRequest, on_demand: rack.maintenanceRequest })[trigger];

/** The handler says which work begins and by which run; the first sub-state is always the same. */
const work = (rack: Rack, { data = {} }: Happening): JsonObject => {
  const request = requestOf(rack, data.trigger as Trigger);
  return { ...data, ...(request && { request: brief(request) }), activity: "firmware_upgrade", phase: "start" };
};
const carriedOf = ({ state: { name: _, ...carried } }: Rack): JsonObject => carried as JsonObject;
const progress = (rack: Rack, { data = {} }: Happening): JsonObject => ({ ...carriedOf(rack), ...data });
const theRun = (_: Rack, { data = {} }: Happening): JsonObject => ({
  ...(data.run !== undefined && { run: data.run }),
});

const failure =
  (origin: ErrorOrigin) =>
  (_: Rack, { message, cause, data = {} }: Happening): JsonObject => ({
    cause: message ?? "unknown",
    ...(cause && { failure: cause }),
    ...data,
    origin,
  });
const failedComponents = (rack: Rack): JsonObject => ({
  cause: failedMembers(rack).join("; "),
  failure: { code: "component_failed" },
  origin: "component" satisfies ErrorOrigin,
});

const ofTrigger = (trigger: Trigger) => (rack: Rack) =>
  rack.state.trigger === trigger ? rack.state.request : undefined;
/** A newer request stays. */
const itsRequest = [
  { field: "maintenanceRequest", carried: ofTrigger("on_demand") },
  { field: "reprovisionRequest", carried: ofTrigger("reprovision") },
] as const;
const asFailed = itsRequest.map((clear) => ({ ...clear, outcome: "failed" }) as const);
const pending = (rack: Rack) => rack.maintenanceRequest ?? undefined;
const refused = [{ field: "maintenanceRequest", carried: pending, outcome: "failed" }] as const;

/** The callers that wait for the requests learn that nobody will carry them out. */
const unheard = { withdraws: ["maintenanceRequest", "reprovisionRequest"] } as const;
/** Counted until the rack is ready again, or an operator has looked: too many of them stop the maintenance of others. */
const countFailure = ({ facts: { workSet } }: Rack): JsonObject =>
  workSet?.admission === undefined ? {} : { failedByItself: true };
const counted = { sets: countFailure };
const overlooked = { sets: (): JsonObject => ({ failedByItself: false }) };
const validated = { sets: (): JsonObject => ({ hasValidated: true, failedByItself: false }) };
const rediscovered = {
  ...discovered,
  sets: (rack: Rack): JsonObject => ({ ...topology(rack), failedByItself: false }),
};

const BY_DELETION = "a deletion during maintenance cancels the run, whose end leads to deleting";
const LOST = "the run is gone, or ended without its effects: nobody else would lead the rack on";
const FORCED = "ForceDeleteRack removes the record at once, whatever it is doing";

/**
 * The table of docs/specs/rack-maintenance.md. The order of the rows is the priority: topology, reprovision, maintenance, component
 * failure. `maintenance_begun` is the handler's, since beginning takes claims and starts a run; controller rows come before the
 * handler, so that `componentFailed` holds only while nothing is requested.
 *
 * A request ends with the maintenance, on success and on failure alike: a failing one cannot loop between error and maintenance.
 */
export const rackLifecycle = defineLifecycle<Rack>()({
  kind: "rack",
  initial: "created",
  quietFacts: ["workSet"],

  // biome-ignore format: a table is read by its columns
  states: {
    created:     { sla: hours(24), doc: "A device names it; waits for a profile and for as many devices as that says." },
    discovering: { sla: minutes(30), deadline: minutes(30), doc: "Waits until all its devices are ready." },
    maintenance: { sla: hours(4), claims: true, doc: "A run works on its devices: firmware, fabric, power." },
    validating:  { sla: minutes(15), claims: true, doc: "A run reads every device: it answers, is on, healthy and at its version." },
    ready:       { rest: true, doc: "In use; may be maintained." },
    error:       { rest: true, trouble: true, doc: "Maintenance, validation, discovery or a device failed; its cause says which." },
    deleting:    { sla: hours(1), doc: "Waits until no device names it any more." },
  },

  // biome-ignore format: a table is read by its columns
  transitions: [
    // from         trigger                          to
    ["created",     when(markedForDeletion),         "deleting",    unheard],
    ["created",     when(inventoryComplete),         "discovering", discovered],
    ["discovering", when(markedForDeletion),         "deleting",    unheard],
    ["discovering", when(topologyChanged),           "discovering", { ...discovered, added: "devices that come or go while the others are awaited show in the history, and the time starts again" }],
    ["discovering", on("maintenance_begun"),         "maintenance", { carries: work }],
    ["discovering", onFailure("devices_missing"),    "error",       { carries: failure("discovery"), added: "a rack that never becomes whole says what is missing" }],
    ["maintenance", caused("activity_changed"),      STAY,          { carries: progress, added: "the nested states of the specification are carried" }],
    ["maintenance", caused("run_succeeded"),         "deleting",    { provided: markedForDeletion, clears: itsRequest, added: BY_DELETION }],
    ["maintenance", caused("run_succeeded"),         "validating",  { clears: itsRequest }],
    ["maintenance", caused("run_failed"),            "deleting",    { provided: markedForDeletion, clears: asFailed, added: BY_DELETION }],
    ["maintenance", caused("run_failed"),            "error",       { ...counted, clears: asFailed, carries: failure("activity") }],
    ["maintenance", caused("run_canceled"),          "deleting",    { provided: markedForDeletion, clears: asFailed, added: BY_DELETION }],
    ["maintenance", caused("run_canceled"),          "error",       { clears: asFailed, carries: failure("activity") }],
    ["maintenance", onFailure("run_lost"),           "error",       { ...counted, clears: asFailed, carries: failure("activity"), added: LOST }],
    ["validating",  on("validation_started"),        STAY,          { carries: theRun, added: "Validating(Pending) becomes Validating(InProgress)" }],
    ["validating",  caused("validation_succeeded"),  "deleting",    { provided: markedForDeletion, added: BY_DELETION }],
    ["validating",  caused("validation_succeeded"),  "ready",       validated],
    ["validating",  caused("validation_failed"),     "deleting",    { provided: markedForDeletion, added: BY_DELETION }],
    ["validating",  caused("validation_failed"),     "error",       { ...counted, carries: failure("validation") }],
    ["validating",  caused("validation_canceled"),   "deleting",    { provided: markedForDeletion, added: BY_DELETION }],
    ["validating",  caused("validation_canceled"),   "error",       { carries: failure("validation") }],
    ["validating",  onFailure("run_lost"),           "error",       { ...counted, carries: failure("validation"), added: LOST }],
    ["ready",       when(markedForDeletion),         "deleting",    unheard],
    ["ready",       when(topologyChanged),           "discovering", discovered],
    ["ready",       when(requestExpired),            STAY,          { expires: ["maintenanceRequest"], added: "a request waits for its devices for a bounded time" }],
    ["ready",       on("maintenance_begun"),         "maintenance", { provided: reprovisionComesFirst, carries: work, supersedes: ["maintenanceRequest"] }],
    ["ready",       on("maintenance_begun"),         "maintenance", { carries: work }],
    ["ready",       on("request_refused"),           STAY,          { clears: refused, added: "a tray was assigned after the request was accepted" }],
    ["ready",       when(componentFailed),           "error",       { carries: failedComponents }],
    ["error",       when(markedForDeletion),         "deleting",    unheard],
    ["error",       when(requestExpired),            STAY,          { expires: ["maintenanceRequest"], added: "a request waits for its devices for a bounded time" }],
    ["error",       on("maintenance_begun"),         "maintenance", { carries: work }],
    ["error",       on("request_refused"),           STAY,          { clears: refused, added: "a tray was assigned after the request was accepted" }],
    ["error",       when(componentsRecovered),       "ready"],
    ["error",       when(discoveryComplete),         "discovering", { ...discovered, added: "a rack that becomes whole after all goes on" }],
    ["error",       asked("clear_error"),            "discovering", { provided: neverValidated, ...rediscovered, added: "an operator ends an error of a failed activity" }],
    ["error",       asked("clear_error"),            "ready",       { ...overlooked, added: "an operator ends an error of a failed activity" }],
    ["deleting",    on("removed"),                   GONE,          { ...unheard, added: "the row goes when its devices are gone or detached" }],
    [ANY,           asked("overlook_failure"),       STAY,          { ...overlooked, added: "an operator lets automatic maintenance go on after failures" }],
    [ANY,           asked("force_delete"),           GONE,          { ...unheard, added: FORCED }],
  ],
});
