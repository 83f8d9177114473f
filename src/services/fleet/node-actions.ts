import { AppError } from "../../kernel/errors.ts";
import { FLEET_ACTIONS, type FleetAction } from "../../lifecycles/fleet-node/actions.ts";
import type { Run } from "../../runs/model/run.ts";
import { listRuns } from "../../store/run/runs.ts";
import type { Caller } from "../call/caller.ts";
import { refusal } from "../catalog/entries.ts";
import type { RunDeps } from "../run/deps.ts";
import { markRunManual } from "../run/operator-actions.ts";
import { actOnWorkflow, cancelJob } from "../run/workflow-actions.ts";
import { findNode } from "./find-node.ts";
import { nodeKey } from "./jobs.ts";

export { FLEET_ACTIONS } from "../../lifecycles/fleet-node/actions.ts";

export interface ActOnNode {
  /** Its id or host name. */
  readonly node: string;
  readonly requestId: string;
  /** One of FLEET_ACTIONS. */
  readonly action: string;
  /** Who sees to it, and why; for mark-manual. */
  readonly comment: string;
}

/** An action on the latest job of the node: each makes the next attempt at it, or ends it. */
export async function actOnNode(deps: RunDeps, caller: Caller, input: ActOnNode): Promise<Run> {
  const action = FLEET_ACTIONS.find((each) => each === input.action);
  if (action === undefined) throw refusal("action", `must be one of ${FLEET_ACTIONS.join(", ")}`);
  const node = await findNode(deps.db, input.node);
  const [job] = await listRuns(deps.db, { target: nodeKey(node.id), limit: 1 });
  if (!job)
    throw new AppError(
      "failed_precondition",
      `fleet node ${node.hostname} has had no job: there is nothing to ${action}`,
      {
        field: "node",
        next: `millwright fleet show ${node.id}`,
      },
    );
  return act(deps, caller, action, { ...input, runId: job.id });
}

/** In the words of the workflow's own actions. */
const ATTEMPTS = {
  "retry-stage": "retry",
  resume: "resume",
  rerun: "rerun",
  "restart-clean": "restart_clean",
  "adopt-observed-state": "adopt",
} as const;

function act(
  deps: RunDeps,
  caller: Caller,
  action: FleetAction,
  input: ActOnNode & { readonly runId: string },
): Promise<Run> {
  const { runId, requestId, comment } = input;
  if (action === "mark-manual") return markRunManual(deps, caller, { runId, comment });
  if (action === "cancel") return cancelJob(deps, caller, { runId, requestId });
  return actOnWorkflow(deps, caller, ATTEMPTS[action], { runId, requestId, called: action });
}

const RECONCILER: Caller = { name: "fleet reconciler", roles: [], address: null };

/**
 * Begins the next attempt at a job that failed, since people have led its machine on in MAAS. One attempt for a run, whichever replica asks,
 * and however often.
 */
export async function adoptLedOn(deps: RunDeps, node: string, failedRun: string): Promise<void> {
  await actOnWorkflow(deps, RECONCILER, "adopt", { runId: failedRun, requestId: `reconciler of ${node} ${failedRun}` });
}
