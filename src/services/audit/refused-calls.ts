import { type RefusedCallsRow, refusedCallListing } from "../../store/access/refused-call-list.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { type ListPage, type ListRequest, pageList } from "../call/listing.ts";

export type { RefusedCallsRow } from "../../store/access/refused-call-list.ts";

/** Who was not let in, the latest first unless the request says. */
export const pageRefusedCalls = (deps: ServiceDeps, request: ListRequest): Promise<ListPage<RefusedCallsRow>> =>
  pageList(deps, refusedCallListing, request, { show: (row) => row });
