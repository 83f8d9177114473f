import { actionCommand } from "../../lifecycles/fleet-node/actions.ts";
import { DRIFT_REASONS, isDriftReason, MENDED_IN_MAAS, remedyOfDrift } from "../../lifecycles/fleet-node/drift.ts";
import { FAILURE_CLASSES } from "../../lifecycles/fleet-node/failure-classes.ts";
import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import type { FleetNodeState } from "../../lifecycles/fleet-node/lifecycle.ts";
import type { Run } from "../../runs/model/run.ts";
import type { FleetObservation } from "../../store/fleet/observations.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { findLack, type LackingNode } from "./find-lack.ts";
import { bundleOf, type FleetJobView, jobViewOf } from "./job-view.ts";

/** What an operator does next, as a command that can be run as it is printed, and why. */
export interface NextAction {
  /** Empty: nothing. */
  readonly command: string;
  readonly why: string;
}

const nothing = (why: string): NextAction => ({ command: "", why });

type ActedOn = Pick<FleetNode, "mode" | "state" | "facts"> & LackingNode;
type Observed = Pick<FleetObservation, "observed" | "drift"> | null;

/** A job that failed comes first, with what has to be on record before it can go on; then what the state of the node leaves to people. */
export async function findNextAction(
  deps: Pick<ServiceDeps, "db" | "secrets">,
  node: ActedOn,
  latest: Run | undefined,
  maas: Observed,
): Promise<NextAction> {
  const job = latest ? jobViewOf(latest) : null;
  if (job === null || latest === undefined) return actionOnDrift(node, maas) ?? actionOnNode(node);
  const lack = await findLack(deps, node, { ...job, bundle: bundleOf(latest) });
  if (lack) return { command: lack.command, why: `${whyFailed(job)}; ${lack.why}` };
  return (
    actionOnJob(node.id, node.state.name as FleetNodeState, job) ?? actionOnDrift(node, maas) ?? actionOnNode(node)
  );
}

/** Until MAAS has the machine Deployed again, there is nothing to recover the node to. */
function actionOnDrift(node: Pick<FleetNode, "id" | "site" | "state" | "facts">, maas: Observed): NextAction | null {
  const isQuarantined = node.state.name === "quarantined";
  const reason = isQuarantined ? node.facts.quarantineReason : (maas?.drift ?? null);
  if (!isDriftReason(reason) || (isQuarantined && maas?.observed === "Deployed")) return null;
  const command = remedyOfDrift(node, reason);
  return command === null
    ? nothing(`${DRIFT_REASONS[reason]}; ${MENDED_IN_MAAS}`)
    : { command, why: DRIFT_REASONS[reason] };
}

const whyFailed = ({ type, stage, message }: FleetJobView): string =>
  `its ${type} failed in ${stage === "" ? "no stage" : stage}: ${message}`;

function actionOnJob(nodeId: string, state: FleetNodeState, job: FleetJobView): NextAction | null {
  switch (job.state) {
    case "pending":
    case "running":
    case "compensating":
      return nothing(`its ${job.type} is ${job.state}`);
    case "failed_retryable":
    case "failed_manual_intervention":
      return {
        command: actionCommand(
          nodeId,
          job.failureClass === "" ? "retry-stage" : FAILURE_CLASSES[job.failureClass].action,
        ),
        why: whyFailed(job),
      };
    case "cancelled":
      return job.workflow === "fleet_onboarding" && (state === "quarantined" || state === "enrolling")
        ? { command: actionCommand(nodeId, "rerun"), why: "its ONBOARD was canceled" }
        : null;
    default:
      return null;
  }
}

function actionOnNode({ id, mode, state, facts }: Pick<FleetNode, "id" | "mode" | "state" | "facts">): NextAction {
  switch (state.name as FleetNodeState) {
    case "bootstrap_issued":
      return nothing("its owner runs the bootstrap command on it");
    case "quarantined":
      return mode === "manual" && facts.enrollment?.consumedAt === null
        ? { command: `millwright fleet bootstrap reissue ${id}`, why: "nobody enrolled with its bootstrap bundle" }
        : { command: `millwright fleet recover ${id}`, why: facts.quarantineReason ?? "it is quarantined" };
    case "offline":
      return nothing("its next healthy heartbeat makes it active; where none comes, check the host and its agent");
    case "enrolling":
      return { command: actionCommand(id, "rerun"), why: "no job brings it up" };
    case "draining":
      return { command: `millwright fleet drain abort ${id}`, why: "no job drains it" };
    case "removing":
      return { command: `millwright fleet remove rollback ${id}`, why: "no job removes it" };
    case "retired":
      return { command: `millwright fleet reactivate ${id}`, why: "it is retired, and keeps its identity" };
    case "active":
    case "deleted":
      return nothing("");
  }
}
