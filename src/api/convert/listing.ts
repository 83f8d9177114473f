import { reachOf } from "../../kernel/access/scope.ts";
import type { Caller } from "../../services/call/caller.ts";
import type { ListPage, ListRequest } from "../../services/call/listing.ts";

/** The fields that every request for a list has, under the same names in every contract of ours. */
interface WireListRequest {
  readonly filter: string;
  readonly orderBy: string;
  readonly pageSize: number;
  readonly pageToken: string;
  readonly withTotal: boolean;
}

/** The caller sees what its scope reaches. A list that belongs to no thing has no caller: nobody's scope of things lets them call it. */
export const listRequestFrom = (
  { filter, orderBy, pageSize, pageToken, withTotal }: WireListRequest,
  caller: Caller | null,
): ListRequest => ({
  filter,
  orderBy,
  pageSize,
  pageToken,
  withTotal,
  reach: reachOf(caller?.scope),
});

/** What every answer has besides its items. */
export const pageOf = ({ nextPageToken, totalSize }: ListPage<unknown>) => ({
  nextPageToken,
  ...(totalSize !== null && { totalSize }),
});
