import { ANY, asked, caused, defineLifecycle, GONE, type Happening, type JsonObject } from "../../kernel/lifecycle.ts";
import { hours } from "../../kernel/time/duration.ts";
import { holds } from "./conditions.ts";
import type { Machine, PhaseAfterRun } from "./machine.ts";

const needsNobody = (machine: Machine) => !holds(machine.conditions, "NeedsIntervention");
const hasNoActiveRun = (machine: Machine) => machine.activeRunId === null;
// Each has a name of its own, since generated pages show it.
const goesInService = (machine: Machine) => leadsTo(machine, "IN_SERVICE");
const becomesReady = (machine: Machine) => leadsTo(machine, "READY");
const goesBackToVendor = (machine: Machine) => leadsTo(machine, "RMA");
const staysAsFromFactory = (machine: Machine) => leadsTo(machine, "FACTORY_READY");
const staysInMaintenance = (machine: Machine) => leadsTo(machine, "MAINTENANCE");
const leadsTo = ({ state }: Machine, phase: PhaseAfterRun): boolean => state.on_success === phase;

/**
 * What `run_started` is told. `onSuccess` is left out by runs with neither repave, join nor rma: the machine then returns to the
 * phase that it had (a reboot does not lift maintenance).
 */
export const runStartedData = (
  { run, job }: { readonly run: string; readonly job: string },
  onSuccess: PhaseAfterRun | null,
): JsonObject => ({ run, job, ...(onSuccess !== null && { on_success: onSuccess }) });

/** The plan is frozen when the run starts, so where success leads is known then, and the table can say it. */
function theRun({ state }: Machine, { data = {} }: Happening): JsonObject {
  const before = (state.job === data.job && state.before) || state.name;
  return { on_success: before, ...data, before, ...stillToBeDrained({ state }) };
}

/** Where an attempt has left the machine is not where its job found it: the attempt that succeeds brings it back there. */
const whereTheJobBegan = ({ state }: Machine): JsonObject => ({
  ...(state.job !== undefined && state.before !== undefined && { job: state.job, before: state.before }),
  ...stillToBeDrained({ state }),
});

/** A run that failed leads to MAINTENANCE too, but nobody asked then for the workloads to be moved away. */
const toBeDrained = (): JsonObject => ({ drain: true });
/** Whoever asked for it before the run has not taken it back: a reboot does not end the maintenance, nor what was wanted of it. */
const stillToBeDrained = ({ state }: Pick<Machine, "state">): JsonObject =>
  state.drain === true ? { drain: true } : {};

/**
 * The phases of docs/specs/bare-metal-api.md. There is no phase for errors: those are conditions.
 *
 * Nothing here moves by itself: people ask, runs cause, and the first inspection of a machine that came from the factory does.
 * PROVISIONING is the run's affair, so it has an SLA. Resting phases have work all the same: who asked for maintenance has the
 * node emptied, and who ends it gets it back.
 */
export const machineLifecycle = defineLifecycle<Machine>()({
  kind: "machine",
  initial: "FACTORY_READY",
  // The records say no more than the lines of `residue`, which are told.
  quietFacts: ["observedAt", "residueRecords"],

  // biome-ignore format: a table is read by its columns
  states: {
    FACTORY_READY: { rest: true,     doc: "Arrived with a base OS and baseline networking." },
    READY:         { rest: true,     doc: "Imported; can be managed." },
    PROVISIONING:  { sla: hours(4),  doc: "A run is changing it; the end of the run leads out." },
    IN_SERVICE:    { rest: true,     doc: "Serves workloads in the customer's cluster." },
    MAINTENANCE:   { rest: true,     doc: "Taken out of service; disruptive work is allowed once `Drained` holds." },
    RMA:           { rest: true,     doc: "Taken out of service to be returned or replaced." },
    RETIRED:       { terminal: true, doc: "Removed from the inventory; nothing can be done with it." },
  },

  // biome-ignore format: a table is read by its columns
  transitions: [
    // from           trigger                     to
    ["FACTORY_READY", asked("accept"),            "READY"],
    ["FACTORY_READY", caused("inspected"),        "READY"],
    ["FACTORY_READY", caused("onboarded"),        "READY",         { added: "a fleet node on it was onboarded: it is as usable as one that was inspected" }],
    ["FACTORY_READY", caused("expired"),          GONE,            { added: "only a boot had put it on record; nobody approved it, and it did not boot again" }],
    ["READY",         asked("enter_maintenance"), "MAINTENANCE",   { carries: toBeDrained }],
    ["IN_SERVICE",    asked("enter_maintenance"), "MAINTENANCE",   { carries: toBeDrained }],
    ["MAINTENANCE",   asked("exit_maintenance"),  "READY",         { provided: needsNobody }],
    [ANY,             caused("run_started"),      "PROVISIONING",  { carries: theRun }],
    ["PROVISIONING",  caused("run_succeeded"),    "IN_SERVICE",    { provided: goesInService }],
    ["PROVISIONING",  caused("run_succeeded"),    "READY",         { provided: becomesReady }],
    ["PROVISIONING",  caused("run_succeeded"),    "RMA",           { provided: goesBackToVendor }],
    ["PROVISIONING",  caused("run_succeeded"),    "FACTORY_READY", { provided: staysAsFromFactory }],
    ["PROVISIONING",  caused("run_succeeded"),    "MAINTENANCE",   { provided: staysInMaintenance, carries: stillToBeDrained }],
    ["PROVISIONING",  caused("run_failed"),       "MAINTENANCE",   { carries: whereTheJobBegan }],
    ["PROVISIONING",  caused("run_canceled"),     "MAINTENANCE",   { carries: whereTheJobBegan }],
    ["RMA",           asked("return"),            "FACTORY_READY"],
    [ANY,             asked("retire"),            "RETIRED",       { provided: hasNoActiveRun }],
  ],
});

/** What a run tells the machine when it ends. */
export type RunEndCause = "run_succeeded" | "run_failed" | "run_canceled";
