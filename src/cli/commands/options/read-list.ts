import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import { type ListOptions, limitOf, printTotal } from "./list-options.ts";

/** What every request for a list of ours carries. */
export interface ListQuery {
  readonly filter: string;
  readonly orderBy: string;
  readonly pageSize: number;
  readonly pageToken: string;
  readonly withTotal: boolean;
}

interface ListAnswer {
  readonly nextPageToken: string;
  readonly totalSize?: number | undefined;
}

const PAGE_SIZE = 500;

/** The rows that the options ask for, page after page; the total is counted once, and printed beside the output. */
export async function readList<A extends ListAnswer, T>(
  session: Session,
  options: ListOptions,
  ask: (query: ListQuery) => Promise<A>,
  itemsOf: (page: A) => readonly T[],
): Promise<T[]> {
  const { filter = "", orderBy = "" } = options;
  const limit = limitOf(options);
  const pageSize = Math.min(limit ?? PAGE_SIZE, PAGE_SIZE);
  let total: number | undefined;
  const items = await readPages(
    async (pageToken) => {
      const withTotal = (options.total ?? false) && pageToken === "";
      const page = await ask({ filter, orderBy, pageSize, pageToken, withTotal });
      total ??= page.totalSize;
      return page;
    },
    itemsOf,
    limit,
  );
  printTotal(session, items.length, total);
  return items;
}
