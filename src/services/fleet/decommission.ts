import { AppError } from "../../kernel/errors.ts";
import { previewOf } from "../../runs/workflows/fleet/fleet-decommission.ts";
import { paramsOfJob } from "../../runs/workflows/fleet/plan-of-job.ts";
import { DECOMMISSION_MODES, type DecommissionParam, FLEET_DECOMMISSION } from "../../runs/workflows/fleet/words.ts";
import { listOpenAllocations } from "../../store/fleet/allocations.ts";
import type { FleetNodeRecord } from "../../store/fleet/nodes.ts";
import { findOnTarget } from "../../store/run/runs.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { refusal } from "../catalog/entries.ts";
import { checkRunRequestId, fingerprintOf, newRunId, sameRequest } from "../run/creation.ts";
import type { RunDeps } from "../run/deps.ts";
import { findNode } from "./find-node.ts";
import { createFleetJob, holdSite, nodeKey, refuseSecondJob } from "./jobs.ts";
import { checkComment, lockNode, moveNode, type NodeVerb } from "./node-verbs.ts";

interface HowToLeave {
  /** One of DECOMMISSION_MODES. */
  readonly mode: string;
  /** The agent will not answer any more, and is not asked. Only where MAAS erases the disks. */
  readonly agentGone?: boolean;
  /** A quarantined node is lifted out of quarantine, once it is validated. */
  readonly liftQuarantine?: boolean;
}

export interface Decommission extends HowToLeave {
  readonly node: string;
  readonly requestId: string;
}

/** Starts the decommission of a node, once for a request. */
export const decommissionNode = (deps: RunDeps, caller: Caller, input: Decommission): Promise<string> =>
  startDecommission(deps, caller, { ...input, ...checkHow(input) });

/** Drains the node and takes it out of scheduling: it is draining from now on, by the job that this starts. */
export const retireNode = (
  deps: RunDeps,
  caller: Caller,
  input: NodeVerb & Pick<Decommission, "requestId">,
): Promise<string> => startDecommission(deps, caller, { ...input, ...RETIREMENT });

const RETIREMENT = { mode: "retire", params: {} } as const;

export interface DecommissionPreview {
  readonly stages: ReturnType<typeof previewOf>;
  /** Allocations that are open now: the job ends them, or is refused by them. */
  readonly allocations: readonly string[];
}

/** What the job would come through as things are now, also that of a retirement (mode retire). Starts nothing. */
export async function previewDecommission(
  deps: ServiceDeps,
  input: HowToLeave & { readonly node: string },
): Promise<DecommissionPreview> {
  const { mode, params } = input.mode === "retire" ? RETIREMENT : checkHow(input);
  const node = await findNode(deps.db, input.node);
  checkMayDecommission(node, mode);
  await refuseSecondJob(deps.db, node.id);
  const allocations = (await listOpenAllocations(deps.db, node.id)).map(({ id }) => id);
  return { stages: previewOf({ ...paramsOfJob({ node, mode }), ...paramsOn(node, params), mode }), allocations };
}

function checkHow({ mode: word, agentGone = false, liftQuarantine = false }: HowToLeave) {
  const mode = DECOMMISSION_MODES.find((each) => each === word);
  if (mode === undefined) throw refusal("mode", `must be one of ${DECOMMISSION_MODES.join(", ")}`);
  const isErased = mode === "full_decommission" || mode === "reimage";
  if (agentGone && !isErased)
    throw refusal("agent_gone", `is for full_decommission and reimage: only the agent can do what ${mode} does`);
  if (liftQuarantine && isErased)
    throw refusal("lift_quarantine", `is for soft_reset and storage_cleanup: ${mode} does not validate the node`);
  return { mode, params: { ...(agentGone && { agent: "gone" }), ...(liftQuarantine && { quarantine: "lift" }) } };
}

interface Starting extends Pick<Decommission, "node" | "requestId"> {
  readonly mode: DecommissionParam;
  readonly params: Readonly<Record<string, string>>;
  readonly comment?: string;
}

const paramsOn = ({ state }: FleetNodeRecord, params: Starting["params"]) => ({ node_state: state.name, ...params });

async function startDecommission(deps: RunDeps, caller: Caller, input: Starting): Promise<string> {
  const { requestId, mode, params } = input;
  checkRunRequestId(requestId);
  const comment = checkComment(input.comment ?? "");
  const { id } = await findNode(deps.db, input.node);
  const fingerprint = fingerprintOf([FLEET_DECOMMISSION, mode, id, ...Object.values(params)]);
  const runId = newRunId();
  return deps.db.transaction(async (tx) => {
    const { node } = await lockNode(tx, id, [runId]);
    const known = await findOnTarget(tx, { target: nodeKey(id), requestId });
    if (known) return sameRequest(known, { requestId, fingerprint });
    checkMayDecommission(node, mode);
    await holdSite(tx, node.site, { evenDisabled: true });
    const job = { id: runId, workflow: FLEET_DECOMMISSION, node, requestId, fingerprint, mode } as const;
    await createFleetJob(tx, deps, caller, { ...job, params: paramsOn(node, params) });
    // In the same commit: nobody is draining without a job that leads out.
    if (mode === "retire") await moveNode(tx, deps, caller, { id, name: "retire", comment });
    return runId;
  });
}

const FROM: Readonly<Record<DecommissionParam, readonly string[]>> = {
  retire: ["active", "offline", "quarantined"],
  soft_reset: ["active", "offline", "quarantined"],
  storage_cleanup: ["active", "offline", "quarantined"],
  reimage: ["active", "offline", "quarantined", "retired"],
  full_decommission: ["active", "offline", "quarantined", "retired"],
};

function checkMayDecommission({ id, hostname, state, mode: nodeMode }: FleetNodeRecord, mode: DecommissionParam): void {
  const refuse = (why: string, next: string) =>
    new AppError("failed_precondition", `fleet node ${hostname} ${why}`, { field: "node", next });
  if (mode === "reimage" && nodeMode === "manual")
    throw refuse("is a manual node: MAAS does not install it", `millwright fleet show ${id}`);
  if (FROM[mode].includes(state.name)) return;
  const next =
    state.name === "draining" || state.name === "removing"
      ? `millwright fleet action ${id} resume`
      : `millwright fleet show ${id}`;
  throw refuse(`is ${state.name}: ${mode} is for nodes that are ${FROM[mode].join(", ")}`, next);
}
