import type { ServiceImpl } from "@connectrpc/connect";
import type { SearchService } from "../../../../contract/millwright/v1/search_pb.js";
import { reachOf } from "../../../kernel/access/scope.ts";
import type { OverviewDeps } from "../../../services/overview/listings.ts";
import { search as searchThings } from "../../../services/search/search.ts";
import { callerKey } from "../../transport/interceptors.ts";

export const search = (deps: OverviewDeps): ServiceImpl<typeof SearchService> => ({
  async search(request, { values }) {
    const reach = reachOf(values.get(callerKey).scope);
    const { hits, isCut } = await searchThings(deps, { ...request, reach });
    return { hits: [...hits], cut: isCut };
  },
});
