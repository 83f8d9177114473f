import { findAgent, findHeartbeats, type Heartbeat } from "../../store/fleet/agents.ts";
import { fleetNodeListing } from "../../store/fleet/node-list.ts";
import { type FleetNodeRecord, listNodes } from "../../store/fleet/nodes.ts";
import { type FleetObservation, findObservations } from "../../store/fleet/observations.ts";
import { listRuns } from "../../store/run/runs.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { type ListPage, type ListRequest, pageList } from "../call/listing.ts";
import { findNode } from "./find-node.ts";
import { type FleetJobView, jobViewOf } from "./job-view.ts";
import { nodeKey } from "./jobs.ts";
import { findNextAction, type NextAction } from "./next-action.ts";

export type { FleetNodeRecord } from "../../store/fleet/nodes.ts";
export type { FleetObservation } from "../../store/fleet/observations.ts";
export type { FleetJobView } from "./job-view.ts";

/** The lifecycle detail view of a node: its coarse state, its latest job, what MAAS shows, and what to do next. */
export interface FleetNodeView {
  readonly node: FleetNodeRecord;
  /** Null: it has had none. */
  readonly job: FleetJobView | null;
  /** Null: nothing of the machine that it is bound to. */
  readonly maas: FleetObservation | null;
  readonly next: NextAction;
  /** Null: no agent has enrolled. */
  readonly agent: FleetAgentView | null;
}

/** Who answers for a node, and what was heard of it last. */
export interface FleetAgentView {
  readonly enrolledAt: Date;
  /** Null: it has not called yet. */
  readonly heard: Heartbeat | null;
}

export async function viewNode(deps: ServiceDeps, text: string): Promise<FleetNodeView> {
  const node = await findNode(deps.db, text);
  return viewOf(deps, node);
}

/** A job ends in the commit that moves its node: the node is read again, so that what is shown of both was true at one moment. */
async function viewOf(deps: ServiceDeps, before: FleetNodeRecord): Promise<FleetNodeView> {
  const { id, version } = before;
  const [run] = await listRuns(deps.db, { target: nodeKey(id), limit: 1 });
  const [node = before] = await listNodes(deps.db, { ids: [id] });
  if (node.version !== version) return viewOf(deps, node);
  const job = run ? jobViewOf(run) : null;
  const observed = (await findObservations(deps.db, [id])).get(id);
  const maas = observed?.systemId === node.facts.systemId ? (observed ?? null) : null;
  const next = await findNextAction(deps, node, run, maas);
  return { node, job, maas, next, agent: await viewAgent(deps, id) };
}

async function viewAgent({ db }: ServiceDeps, nodeId: string): Promise<FleetAgentView | null> {
  const [agent, heard] = await Promise.all([findAgent(db, nodeId), findHeartbeats(db, [nodeId])]);
  return agent ? { enrolledAt: agent.enrolledAt, heard: heard.get(nodeId) ?? null } : null;
}

export interface NodeListRequest extends ListRequest {
  /** Also nodes that were removed, which are outside the inventory. */
  readonly withDeleted: boolean;
}

/** The inventory view. In the order of their ids unless told. */
export const pageNodes = <T>(
  deps: ServiceDeps,
  request: NodeListRequest,
  show: (node: FleetNodeRecord) => T,
): Promise<ListPage<T>> =>
  pageList(deps, fleetNodeListing, request, {
    query: { withDeleted: request.withDeleted },
    ...(!request.withDeleted && { clauses: [{ field: "state", operator: "!=", value: "deleted" }] }),
    show,
  });
