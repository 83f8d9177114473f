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
import type { Switch } from "./switch.ts";

const processed = () => true;
const markedForDeletion = ({ deletedAt }: Switch) => deletedAt !== null;
const awaitsFabric = ({ state }: Switch) => state.awaitsFabric === true;

const cause = (_: Switch, { message, cause: code }: Happening): JsonObject => ({
  cause: message ?? "unknown",
  ...(code && { failure: code }),
});
/** Which rack, which run, and whether the fabric is configured after the firmware. */
const itsRack = (_: Switch, { data }: Happening): JsonObject => ({
  step: "waiting_for_rack_firmware_upgrade",
  ...data,
});
const nextStep = ({ state: { name: _, ...carried } }: Switch): JsonObject => ({
  ...(carried as JsonObject),
  step: "waiting_for_nmxc_configure",
});

const beforeReady = "a switch that cannot be read can still be removed";

/** The table of docs/specs/rack-maintenance.md, "Switches". Nothing but a rack's maintenance leads to reprovisioning. */
export const switchLifecycle = defineLifecycle<Switch>()({
  kind: "switch",
  initial: "created",
  quietFacts: ["sensors", "observedAt", "deviceLog", "deviceLogReadAt"],

  // biome-ignore format: a table is read by its columns
  states: {
    created:        { sla: minutes(5), doc: "The record exists; awaiting the controller's first pass." },
    initializing:   { sla: minutes(5), doc: "Reading the switch from its BMC until an interface of its own operating system is found." },
    configuring:    { sla: minutes(5), doc: "Checking credentials and registering monitoring." },
    validating:     { sla: minutes(5), doc: "Comparing the serial number and reading its health." },
    bom_validating: { sla: minutes(5), doc: "Reading its slot and tray index. What is missing is reported and stops nothing." },
    ready:          { rest: true,      doc: "In use and monitored." },
    reprovisioning: { sla: hours(4),   doc: "Its rack is maintained: waiting for its firmware, then for the fabric where that is configured too." },
    error:          { rest: true, trouble: true, doc: "Waits for a correction of its expected switch, or for the next maintenance of its rack." },
    deleting:       { sla: minutes(5), doc: "Being removed." },
  },

  // biome-ignore format: a table is read by its columns
  transitions: [
    // from             trigger                        to
    ["created",         when(markedForDeletion),       "deleting",       { added: beforeReady }],
    ["created",         when(processed),               "initializing"],
    ["initializing",    when(markedForDeletion),       "deleting",       { added: beforeReady }],
    ["initializing",    on("interface_associated"),    "configuring"],
    ["initializing",    onFailure("identity_wrong"),   "error",          { carries: cause }],
    ["configuring",     when(markedForDeletion),       "deleting",       { added: beforeReady }],
    ["configuring",     on("password_rotated"),        "validating"],
    ["validating",      when(markedForDeletion),       "deleting",       { added: beforeReady }],
    ["validating",      on("validated"),               "bom_validating"],
    ["bom_validating",  when(markedForDeletion),       "deleting",       { added: beforeReady }],
    ["bom_validating",  on("bom_validated"),           "ready"],
    ["ready",           when(markedForDeletion),       "deleting"],
    ["ready",           caused("rack_requested"),      "reprovisioning", { carries: itsRack }],
    ["reprovisioning",  when(markedForDeletion),       "deleting",       { added: "while its rack works on it nobody can mark it: the rack has let go of it" }],
    ["reprovisioning",  caused("firmware_proven"),     STAY,             { provided: awaitsFabric, carries: nextStep }],
    ["reprovisioning",  caused("firmware_proven"),     "ready"],
    ["reprovisioning",  caused("fabric_configured"),   "ready"],
    ["reprovisioning",  caused("firmware_failed"),     "error",          { carries: cause }],
    ["reprovisioning",  caused("fabric_failed"),       "error",          { carries: cause }],
    ["reprovisioning",  caused("rack_ended"),          "ready"],
    ["error",           when(markedForDeletion),       "deleting"],
    ["error",           caused("rack_requested"),      "reprovisioning", { carries: itsRack, added: "a rack request that covers it leads out of error" }],
    ["error",           caused("expected_updated"),    "initializing",   { added: "a corrected expected switch leads out of error" }],
    ["deleting",        on("removed"),                 GONE],
    [ANY,               asked("force_delete"),         GONE,             { added: "AdminForceDeleteSwitch removes the record at once, whatever it is doing" }],
  ],
});

export type SwitchState = keyof typeof switchLifecycle.states;
