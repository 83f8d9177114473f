import { type Effect, move } from "../../kernel/effects.ts";
import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import type { RunEnd, RunOn } from "./target-kind.ts";

/** Where these stages fail, nothing was done to the node yet that a heartbeat could not prove good. */
const BEFORE_CLEANUP: readonly string[] = ["disable_node", "force_release_allocations", "drain_node"];
const CLEANUP: readonly string[] = ["cleanup_storage", "scrub_gpu"];
const VALIDATION = "validate_clean_node";

/**
 * The stages move the node; its end says what follows of them. Every move is one of the table: where a node is elsewhere by now, nothing
 * is written of it.
 */
export function decommissionEnded(run: RunOn<FleetNode>, end: RunEnd): readonly Effect[] {
  switch (end.phase) {
    case "SUCCEEDED":
      return succeeded(run);
    case "FAILED":
      return failed(run, end);
    case "CANCELED":
      return canceled(run, end);
  }
}

function succeeded({ target, params }: RunOn<FleetNode>): readonly Effect[] {
  const { id } = target;
  switch (params.mode) {
    case "soft_reset":
    case "storage_cleanup":
      // It was validated; that the quarantine may end is for somebody to say.
      return [
        moved(id, "reset_completed", params.quarantine === "lift" ? { facts: { quarantineReason: null } } : {}),
        moved(id, "still_quarantined"),
      ];
    case "reimage":
      return [moved(id, "reimaged"), moved(id, "still_quarantined")];
    case "full_decommission":
      // An attempt that went on after the removal had failed may not have begun it again.
      return [moved(id, "removal_begun"), moved(id, "uninstalled")];
    default:
      return [];
  }
}

/**
 * A node that could not be drained goes on as it was; one that is not clean is quarantined; one that is half cleaned stays draining, and is nobody's
 * to schedule on until the job is gone on with or canceled. A removal that failed leaves the node retired.
 */
function failed(run: RunOn<FleetNode>, { message, cause }: RunEnd): readonly Effect[] {
  const { id } = run.target;
  const said = message === "" ? {} : { message };
  const stage = run.facts.steps.findLast(({ state }) => state === "FAILED")?.name ?? "disable_node";
  const removal = moved(id, "uninstall_failed", said);
  if (stage === VALIDATION) return notClean(id, { ...said, reason: message || cause?.code || "it is not clean" });
  if (BEFORE_CLEANUP.includes(stage)) return [moved(id, "drain_failed", said), moved(id, "still_quarantined"), removal];
  return [removal];
}

/** What was wiped, or may have been, and not validated is nothing to schedule on. */
function canceled(run: RunOn<FleetNode>, { message }: RunEnd): readonly Effect[] {
  const { id } = run.target;
  const said = message === "" ? {} : { message };
  const { steps } = run.facts;
  const isWiped = steps.some(({ name, actingAt }) => CLEANUP.includes(name) && actingAt != null);
  const isValidated = steps.some(({ name, state }) => name === VALIDATION && state === "SUCCEEDED");
  const letGo = moved(id, "decommission_canceled", said);
  return isWiped && !isValidated
    ? [
        letGo,
        moved(id, "validation_failed", {
          data: { reason: "its decommission was canceled after its cleanup had begun" },
        }),
      ]
    : [letGo, moved(id, "still_quarantined")];
}

/** Two rows in one commit: the table has none from draining to quarantined. */
const notClean = (
  id: string,
  { reason, message }: { readonly reason: string; readonly message?: string },
): readonly Effect[] => {
  const more = { ...(message !== undefined && { message }), data: { reason } };
  return [moved(id, "validation_failed", more), moved(id, "validation_failed", more)];
};

type Cause = Parameters<typeof move<typeof fleetNodeLifecycle>>[2];
const moved = (id: string, cause: Cause, more: Parameters<typeof move>[3] = {}): Effect =>
  move(fleetNodeLifecycle, id, cause, { ifPossible: true, ...more });
