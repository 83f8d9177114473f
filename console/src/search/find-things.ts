import { type SearchHit, SearchService } from "../../../contract/millwright/v1/search_pb.js";
import { clientOf } from "../api/services.ts";
import { pathOfThing } from "../pages/thing-path.ts";

export interface Found {
  readonly kind: string;
  readonly id: string;
  /** What tells it from others, in a few words. */
  readonly about: string;
  readonly to: string;
}

const MOST = 20;

/** Things by whatever somebody has in hand. Those whose kind has no page are left out. */
export async function findThings(query: string, signal: AbortSignal): Promise<Found[]> {
  const { hits } = await clientOf(SearchService).search({ query: query.slice(0, 100), limit: MOST }, { signal });
  return hits.flatMap((hit) => {
    const to = pathOfThing(hit.kind, hit.id);
    return to === undefined ? [] : [{ kind: hit.kind, id: hit.id, about: aboutOf(hit), to }];
  });
}

const aboutOf = ({ id, field, value, name, state, rackId }: SearchHit): string => {
  const why = value === id || value === name ? "" : `${field} ${value}`;
  return [name === id ? "" : name, why, state, rackId].filter((each) => each !== "").join(" · ");
};
