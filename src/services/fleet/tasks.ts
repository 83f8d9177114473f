import { fleetTaskListing, type ListedTask } from "../../store/fleet/task-list.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { is, type ListPage, type ListRequest, pageList } from "../call/listing.ts";
import { findNode } from "./find-node.ts";

export type { ListedTask } from "../../store/fleet/task-list.ts";

export interface TaskListRequest extends ListRequest {
  /** Its id or host name; empty: of all nodes. */
  readonly node: string;
}

/** What agents were asked to do and what came of it, the newest first unless told. Tasks that ended are kept for a while. */
export async function pageTasks<T>(
  deps: ServiceDeps,
  request: TaskListRequest,
  show: (task: ListedTask) => T,
): Promise<ListPage<T>> {
  const { node } = request;
  const id = node === "" ? undefined : (await findNode(deps.db, node)).id;
  return pageList(deps, fleetTaskListing, request, { clauses: is("node_id", id), query: { node: id ?? "" }, show });
}
