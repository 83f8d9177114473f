import type { Install } from "./install.ts";
import { isRebooting } from "./install-steps.ts";

/** What a node that boots from the network gets. */
export type BootDecision =
  /** Straight on to its disk. */
  | { readonly type: "local"; readonly why: string }
  /** Approved, and something is still missing that people bring: asks again in a while. */
  | { readonly type: "wait"; readonly why: string }
  | {
      readonly type: "install";
      readonly attempt: number;
      /** The same attempt goes on behind a step that rebooted the machine. */
      readonly resumes?: boolean;
    }
  | { readonly type: "erase" }
  /** Something for people to see on the screen, then its disk. */
  | { readonly type: "problem"; readonly message: string };

/** What is known of the workflow that the node is to be installed with. */
export type WorkflowSeen = "none" | "missing" | "ready";

/**
 * Who asks for the script of a boot. `sole`: nobody else has. Where several have, nobody knows which of them is the machine: a `rival` has not
 * reported yet that it installs, one that `has_begun` has.
 */
export type Claimant = "sole" | "rival" | "has_begun";

/**
 * By the state of the install, and by who asks. An install whose last attempt failed gets its script again: that boot is
 * the next attempt. An installer's own reboot must not begin an installation that is under way again.
 */
export function decideBoot(install: Install, workflow: WorkflowSeen, claimant: Claimant = "sole"): BootDecision {
  const { state, facts } = install;
  if (state.name === "pending" || state.name === "installing") {
    // Refused, the machine would be locked out by a stranger who came first. Each gets it until it has begun.
    if (claimant === "rival") return toInstall(install, workflow);
    if (claimant === "has_begun") return { type: "local", why: "its boot is contested" };
  }
  switch (state.name) {
    case "discovered":
      return { type: "local", why: "discovered: awaits approval" };
    case "pending":
      return toInstall(install, workflow);
    case "installing":
      if (facts.attemptFailed) return toInstall(install, workflow);
      if (isRebooting(install) && workflow === "ready")
        return { type: "install", attempt: facts.installAttempts + 1, resumes: true };
      return { type: "local", why: "the installation is under way" };
    case "install_failed":
      return { type: "problem", message: `the installation failed: ${facts.lastInstallError ?? "no reason given"}` };
    case "deprovisioning":
      return { type: "erase" };
    default:
      return { type: "local", why: state.name };
  }
}

function toInstall({ facts }: Install, workflow: WorkflowSeen): BootDecision {
  if (workflow === "none") return { type: "wait", why: "is approved and waits for a workflow" };
  if (workflow === "missing") return { type: "problem", message: "its workflow does not exist any more" };
  return { type: "install", attempt: facts.installAttempts + 1 };
}
