import type { NetInstall, NetInstallOrder, NetInstallSeen } from "../../capabilities/net-install.ts";
import { AppError, StepFailure } from "../../kernel/errors.ts";
import { MAX_INSTALL_ATTEMPTS } from "../../lifecycles/install/install.ts";
import { describeStep } from "../../lifecycles/install/install-steps.ts";
import { type InstallRecord, loadInstalls } from "../../store/install/installs.ts";
import { whyRefused } from "../../store/install/orders.ts";
import type { ServiceDeps } from "../call/deps.ts";

/** What runs ask about the installs that they order. */
export const openInstallOrders = ({ db }: Pick<ServiceDeps, "db">): NetInstall => ({
  check: (order) =>
    asStep(async () => {
      const why = await whyRefused(db, order);
      if (why !== null) throw new AppError("failed_precondition", why);
    }),
  read: (order) => asStep(async () => seenOf((await loadInstalls(db, [order.machineId])).things[0], order)),
});

/** A refusal is an answer that the step fails with; a database that is away is none. */
async function asStep<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof AppError) || error.kind === "unavailable" || error.kind === "deadline_exceeded") throw error;
    const code = error.kind === "conflict" ? "changed_meanwhile" : "invalid_input";
    throw new StepFailure(code, error.message, { cause: error });
  }
}

function seenOf(install: InstallRecord | undefined, { orderId, runId }: NetInstallOrder): NetInstallSeen {
  const absent = { state: "absent", message: "", tokenShown: false, awaitsProof: false } as const;
  if (!install || install.facts.orderId !== orderId) return absent;
  const { state, facts, reportTokenHash } = install;
  const base = { tokenShown: facts.tokenShown, awaitsProof: state.name === "installed" };
  const isOurs = facts.orderedBy === runId;
  switch (state.name) {
    case "pending":
      // What people queued again is theirs, until it is ordered anew.
      if (!isOurs) return absent;
      if (reportTokenHash === null) return { ...base, state: "ordered", message: "waits for the machine to boot" };
      return { ...base, state: "begun", message: "its install script was handed out; nothing was reported yet" };
    case "installing":
      return isOurs ? { ...base, state: "installing", message: progressOf(install) } : absent;
    case "installed":
    case "active":
      return { ...base, state: "installed", message: "installed" };
    case "install_failed":
      return { ...base, state: "failed", message: `the installation failed: ${whyFailed(install)}` };
    default:
      return { ...base, state: "failed", message: `the node is now ${state.name}` };
  }
}

const whyFailed = ({ facts }: InstallRecord): string => facts.lastInstallError ?? "no reason given";

function progressOf(install: InstallRecord): string {
  const { installAttempts, attemptFailed, progress } = install.facts;
  if (attemptFailed)
    return `attempt ${installAttempts} of ${MAX_INSTALL_ATTEMPTS} failed (${whyFailed(install)}); the next boot begins the next attempt`;
  const step = describeStep(install.facts.steps);
  return `installing, ${progress ?? 0} % of attempt ${installAttempts + 1} of ${MAX_INSTALL_ATTEMPTS}${step === undefined ? "" : `: ${step}`}`;
}
