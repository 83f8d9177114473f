import { require } from "../../kernel/effects.ts";
import { type Handlers, happened, nothingToDo, waitFor } from "../../kernel/outcome.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, describeDuration, milliseconds, minutes, seconds } from "../../kernel/time/duration.ts";
import { type Install, MAX_INSTALL_ATTEMPTS } from "./install.ts";
import { describeStep } from "./install-steps.ts";
import { installLifecycle } from "./lifecycle.ts";

export interface InstallContext {
  readonly clock: Clock;
  /** How long an attempt may take; zero: for ever. */
  readonly installTimeout: Duration;
}

/** What becomes of a replacement wakes the node that it replaces; this is for a wake-up that was missed. */
const LOOKS_AT_REPLACEMENT: Duration = seconds(30);
/** Who settles it wakes it. */
const LOOKS_AT_DOUBT: Duration = minutes(10);
/** Only for what is told of it: reports lead on by themselves. */
const LOOKS_AT_ERASING: Duration = seconds(60);

/**
 * A node installs itself and reports; here only its clock is watched, and who takes its place. Time that is up counts as a failed attempt, whether or
 * not the node ever boots again: so that no install hangs for ever.
 */
export const installHandlers: Handlers<typeof installLifecycle, Install, InstallContext> = {
  async installing({ facts, stateSince, isCompleteInDoubt }, { clock, installTimeout }) {
    // To begin again would destroy what may have been installed.
    if (isCompleteInDoubt)
      return waitFor(`waiting for a person: ${facts.lastInstallError ?? "its boot is contested"}`, LOOKS_AT_DOUBT);
    if (installTimeout === 0) return nothingToDo(null);
    const since = facts.attemptStartedAt ?? stateSince;
    const left = since.getTime() + installTimeout - clock.now().getTime();
    if (left <= 0) {
      return happened("timed_out", {
        message: `not complete within ${describeDuration(installTimeout)}`,
        facts: { attemptStartedAt: clock.now().toISOString() },
      });
    }
    const reason = facts.attemptFailed
      ? `attempt ${facts.installAttempts} failed (${facts.lastInstallError ?? "no reason given"}); the next boot is the next attempt`
      : [`attempt ${facts.installAttempts + 1} of ${MAX_INSTALL_ATTEMPTS} is under way`, describeStep(facts.steps)]
          .filter((part) => part !== undefined)
          .join(": ");
    return waitFor(reason, milliseconds(left));
  },

  /** The node erases itself and reports: this only says what is missing, as a working thing without a planned pass counts as stranded. */
  async deprovisioning({ facts }) {
    const read = facts.erasedDisks.filter(({ verified }) => verified).length;
    return waitFor(
      `waiting for the machine to boot and to report every disk as erased; disks read back so far: ${read}`,
      LOOKS_AT_ERASING,
    );
  },

  /** The replacement has proved itself once it is active: verified by a person, by its first boot, by its workflow or by a run. */
  async migrating({ state, related }) {
    const replacement = state.replacement ?? "";
    const now = related?.replacement?.state;
    if (now === "active")
      return happened("replacement_proven", {
        message: `${replacement} has taken its place`,
        effects: [require(installLifecycle, replacement, { states: ["active"] })],
      });
    return waitFor(`waiting for ${replacement} to be active: it is ${now ?? "gone"}`, LOOKS_AT_REPLACEMENT);
  },
};
