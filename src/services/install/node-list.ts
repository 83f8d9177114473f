import type { Filter } from "../../kernel/filter/filter.ts";
import type { InstallState } from "../../lifecycles/install/install.ts";
import { type InstallField, installListing } from "../../store/install/install-list.ts";
import type { InstallRecord } from "../../store/install/installs.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { is, type ListPage, type ListRequest, pageList } from "../call/listing.ts";

export interface NodeQuery extends ListRequest {
  readonly state?: InstallState | undefined;
  /** In one of these groups. */
  readonly groupIds?: readonly string[] | undefined;
  readonly tag?: string | undefined;
}

/** The oldest first unless told. */
export function pageNodes(deps: ServiceDeps, request: NodeQuery): Promise<ListPage<InstallRecord>> {
  const { state, groupIds, tag } = request;
  const clauses: Filter<InstallField> = [
    ...is("state", state),
    ...(groupIds ? [{ field: "group_id", operator: "in", values: groupIds } as const] : []),
    ...is("tag", tag),
  ];
  return pageList(deps, installListing, request, { clauses, query: { state, groupIds, tag }, show: (node) => node });
}
