import type { ServiceImpl } from "@connectrpc/connect";
import type { SearchService } from "../../../../contract/millwright/v1/search_pb.js";
import type { OverviewDeps } from "../../../services/overview/listings.ts";
import { search as searchThings } from "../../../services/search/search.ts";

export const search = (deps: OverviewDeps): ServiceImpl<typeof SearchService> => ({
  async search(request) {
    const { hits, isCut } = await searchThings(deps, request);
    return { hits: [...hits], cut: isCut };
  },
});
