import type { ListPage, ListRequest } from "../../services/call/listing.ts";

/** The fields that every request for a list has, under the same names in every contract of ours. */
interface WireListRequest {
  readonly filter: string;
  readonly orderBy: string;
  readonly pageSize: number;
  readonly pageToken: string;
  readonly withTotal: boolean;
}

export const listRequestFrom = ({ filter, orderBy, pageSize, pageToken, withTotal }: WireListRequest): ListRequest => ({
  filter,
  orderBy,
  pageSize,
  pageToken,
  withTotal,
});

/** What every answer has besides its items. */
export const pageOf = ({ nextPageToken, totalSize }: ListPage<unknown>) => ({
  nextPageToken,
  ...(totalSize !== null && { totalSize }),
});
