import {
  ANY,
  asked,
  caused,
  defineLifecycle,
  GONE,
  type Happening,
  type JsonObject,
  on,
  reported,
  STAY,
  when,
} from "../../kernel/lifecycle.ts";
import { hours } from "../../kernel/time/duration.ts";
import { type ErasedDisk, type Install, MAX_INSTALL_ATTEMPTS, MOST_DISKS } from "./install.ts";
import { type StepReport, withReport } from "./install-steps.ts";

const hasAttemptsLeft = ({ facts }: Install) => facts.installAttempts + 1 < MAX_INSTALL_ATTEMPTS;
/** As the workflow said when the install was complete: what is assigned later is for the next one. */
const workflowPromotes = ({ state }: Install) => state.promotes === true;
const promotion = ({ promotesWhenComplete }: Install): JsonObject => (promotesWhenComplete ? { promotes: true } : {});
const groupPromotes = (install: Install) => install.promotesOnFirstBoot;

const text = (data: JsonObject | undefined, name: string): string | null => {
  const value = data?.[name];
  return typeof value === "string" ? value : null;
};
const NO_FAILURES = { installAttempts: 0, lastInstallError: null, attemptFailed: false };

/** `now` travels with what happened, since a table has no clock. */
const firstAttempt = (_: Install, { data }: Happening): JsonObject => ({
  installAttempts: 0,
  attemptFailed: false,
  attemptStartedAt: text(data, "now"),
  progress: 0,
});
const nextAttempt = (_: Install, { data }: Happening): JsonObject => ({
  attemptFailed: false,
  attemptStartedAt: text(data, "now"),
  progress: 0,
});
const stepMade = ({ facts }: Install, { data }: Happening): JsonObject =>
  data?.step === undefined ? {} : { steps: withReport(facts.steps, data.step as StepReport) };
const progressMade = (install: Install, happening: Happening): JsonObject => ({
  progress: typeof happening.data?.progress === "number" ? happening.data.progress : install.facts.progress,
  ...stepMade(install, happening),
});
const tellsOfStep = ({ facts }: Install) => facts.steps.some(({ required }) => !required);
/** The engine's own pass brings the time as a fact of its own. */
const oneMoreFailure = ({ facts }: Install, { data, message }: Happening): JsonObject => {
  const now = text(data, "now");
  return {
    installAttempts: facts.installAttempts + 1,
    lastInstallError: message ?? null,
    attemptFailed: true,
    ...(now !== null && { attemptStartedAt: now }),
  };
};
const completed = (_: Install, { data }: Happening): JsonObject => ({
  ...NO_FAILURES,
  progress: 100,
  tokenShown: data?.token_shown === true,
});
const queuedAnew = (): JsonObject => ({
  ...NO_FAILURES,
  progress: null,
  attemptStartedAt: null,
  tokenShown: false,
  steps: [],
});
const isOrdered = ({ facts }: Install) => facts.orderedBy !== null;
const letGo = (): JsonObject => ({ orderedBy: null });
const provenUnreported = (): JsonObject => ({ ...letGo(), ...NO_FAILURES, progress: 100 });
/** Not a failure of the node's: it keeps its count, and the reason is for people. */
const givenUp = ({ facts }: Install, { message }: Happening): JsonObject => ({
  ...letGo(),
  installAttempts: facts.installAttempts,
  lastInstallError: message ?? null,
  attemptFailed: true,
});
const diskErased = ({ facts }: Install, { data }: Happening): JsonObject => {
  const erased = data?.disk as ErasedDisk | undefined;
  if (erased === undefined) return {};
  const others = facts.erasedDisks.filter(({ disk }) => disk !== erased.disk);
  // Of a disk too many nothing is kept: so that `erased` is not believed of it.
  return others.length >= MOST_DISKS ? {} : { erasedDisks: [...others, erased] };
};
/** Disks may have other names at the next boot, or be gone: what counts is what one boot tells. */
const nothingErasedYet = (): JsonObject => ({ erasedDisks: [] });
const toBeErased = (): JsonObject => ({ ...nothingErasedYet(), lastInstallError: null });
const eraseFailed = (_: Install, { message }: Happening): JsonObject => ({ lastInstallError: message ?? null });
const everyDiskVerified = ({ facts }: Install) =>
  facts.erasedDisks.length > 0 && facts.erasedDisks.every(({ verified }) => verified);
const allErased = (): JsonObject => ({ lastInstallError: null });
const replacement = (_: Install, { data: { replacement: machine, moved, displaced, queued } = {} }: Happening) =>
  ({ replacement: machine, moved, displaced, queued }) as JsonObject;

const BY_HAND = "an operator settles what the node cannot report any more";
const RUN_ENDED = "the run that installed through it ended first";

/**
 * The table of docs/specs/node-install.md. What a node reports is applied in the report's own transaction; the engine only
 * watches the clock of an attempt.
 *
 * A failed attempt leaves the node in `installing`: its next boot is the next attempt. The third failure waits for people.
 */
export const installLifecycle = defineLifecycle<Install>()({
  kind: "install",
  initial: "discovered",
  quietFacts: ["lastSeenAt"],
  toldInFull: true,

  // biome-ignore format: a table is read by its columns
  states: {
    discovered:     { rest: true,                    doc: "Booted from the network and registered; awaits approval." },
    pending:        { rest: true,                    doc: "Approved; installs at its next boot from the network." },
    installing:     { sla: hours(4),  claims: true,  doc: "An installation is under way." },
    install_failed: { rest: true, trouble: true, doc: "Failed three times; waits for people." },
    installed:      { rest: true,                    doc: "The installation is complete; awaits verification." },
    active:         { rest: true,                    doc: "In production use." },
    reprovision:    { rest: true,                    doc: "Marked to be installed again." },
    deprovisioning: { sla: hours(48), claims: true,  doc: "Its disks are being erased and read back." },
    migrating:      { sla: hours(48), claims: true,  doc: "Another machine is taking its place." },
    retired:        { terminal: true,                doc: "Decommissioned." },
  },

  // biome-ignore format: a table is read by its columns
  transitions: [
    // from             trigger                       to
    ["discovered",      asked("approve"),             "pending",        { sets: queuedAnew }],
    ["discovered",      caused("auto_provisioned"),   "pending",        { sets: queuedAnew }],
    ["discovered",      caused("repave_requested"),   "pending",        { sets: queuedAnew }],
    ["discovered",      caused("replaces"),           "pending",        { sets: queuedAnew }],
    ["discovered",      caused("expired"),            GONE,             { added: "nobody approved it, and it did not boot again" }],
    ["pending",         reported("started"),          "installing",     { sets: firstAttempt }],
    ["pending",         asked("start"),               "installing",     { sets: firstAttempt, added: BY_HAND }],
    ["installing",      reported("progress"),         STAY,             { sets: progressMade }],
    ["installing",      reported("complete"),         "installed",      { sets: completed, carries: promotion }],
    ["installed",       reported("progress"),         STAY,             { provided: tellsOfStep, sets: stepMade }],
    ["installing",      reported("failed"),           STAY,             { provided: hasAttemptsLeft, sets: oneMoreFailure }],
    ["installing",      reported("failed"),           "install_failed", { sets: oneMoreFailure }],
    ["installing",      on("timed_out"),              STAY,             { provided: hasAttemptsLeft, sets: oneMoreFailure }],
    ["installing",      on("timed_out"),              "install_failed", { sets: oneMoreFailure }],
    ["installing",      caused("script_handed_out"),  STAY,             { sets: nextAttempt }],
    ["installing",      asked("complete"),            "installed",      { sets: completed, carries: promotion, added: BY_HAND }],
    ["installing",      asked("give_up"),             "install_failed", { sets: oneMoreFailure, added: BY_HAND }],
    ["pending",         caused("called_off"),         "discovered",     { added: "what it was to replace stays in its place" }],
    ["pending",         caused("run_ended"),          "install_failed", { provided: isOrdered, sets: givenUp, added: RUN_ENDED }],
    ["installing",      caused("run_ended"),          "install_failed", { provided: isOrdered, sets: givenUp, added: RUN_ENDED }],
    ["install_failed",  caused("run_ended"),          STAY,             { provided: isOrdered, sets: letGo }],
    ["installed",       caused("run_ended"),          STAY,             { provided: isOrdered, sets: letGo }],
    ["active",          caused("run_ended"),          STAY,             { provided: isOrdered, sets: letGo }],
    ["install_failed",  asked("reset"),               "pending",        { sets: queuedAnew }],
    ["install_failed",  caused("repave_requested"),   "pending",        { sets: queuedAnew }],
    ["installed",       when(workflowPromotes),       "active"],
    ["installed",       asked("activate"),            "active"],
    ["installed",       reported("first_boot"),       "active",         { provided: groupPromotes }],
    ["installed",       caused("repave_proven"),      "active",         { sets: letGo }],
    ["installing",      caused("repave_proven"),      "active",         { provided: isOrdered, sets: provenUnreported, added: "an ordinary installer does not report: its system proves itself" }],
    ["installed",       caused("repave_requested"),   "pending",        { sets: queuedAnew, added: "a run repaves what nobody has verified yet" }],
    ["active",          asked("reprovision"),         "reprovision"],
    ["active",          caused("repave_requested"),   "reprovision"],
    ["active",          asked("deprovision"),         "deprovisioning", { sets: toBeErased }],
    ["active",          asked("migrate"),             "migrating",      { carries: replacement }],
    ["reprovision",     asked("requeue"),             "pending",        { sets: queuedAnew }],
    ["reprovision",     caused("repave_requested"),   "pending",        { sets: queuedAnew }],
    ["deprovisioning",  caused("script_handed_out"),  STAY,             { sets: nothingErasedYet }],
    ["deprovisioning",  reported("disk_erased"),      STAY,             { sets: diskErased }],
    ["deprovisioning",  reported("erase_failed"),     STAY,             { sets: eraseFailed }],
    ["deprovisioning",  reported("erased"),           "retired",        { provided: everyDiskVerified, sets: allErased }],
    ["deprovisioning",  asked("confirm_erased"),      "retired",        { sets: allErased, added: "an operator vouches for what the node cannot prove" }],
    ["migrating",       on("replacement_proven"),     "active"],
    ["migrating",       asked("activate"),            "active",         { added: BY_HAND }],
    [ANY,               asked("retire"),              "retired"],
  ],
});

/** Who caused a transition, in the words of the history. */
export const TRIGGERED_BY = {
  caller: "admin",
  agent: "node_report",
  controller: "system",
  handler: "system",
  other: "system",
} as const;
