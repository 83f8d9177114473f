import { type InfiniteData, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { listKey } from "../api/query-keys.ts";
import { useEvents } from "../live/live.tsx";

export interface ListPage<T> {
  readonly items: readonly T[];
  readonly nextPageToken: string;
  readonly totalSize?: number | undefined;
}

export interface ListRequest {
  readonly filter: string;
  readonly orderBy: string;
  readonly pageToken: string;
  readonly pageSize: number;
  readonly withTotal: boolean;
}

export interface PagedListOptions<T> {
  /** The lifecycle of the things: its events renew the list. */
  readonly kind: string;
  readonly filter: string;
  readonly orderBy: string;
  read(request: ListRequest, signal: AbortSignal): Promise<ListPage<T>>;
  idOf(item: T): string;
  /** The field of filters that holds the id. */
  readonly idField: string;
  /** Rows that leave the list go, and the list is read again when some come: it is a group, and they move from one to another. */
  readonly movesRows?: boolean;
  /** Nothing is read: the list is shown in another way. */
  readonly isOff?: boolean;
}

export interface PagedList<T> {
  readonly items: readonly T[];
  readonly total: number | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
  readonly hasMore: boolean;
  readMore(): void;
  /** Something came, went or moved since the list was read: it shows once somebody asks. */
  readonly isOld: boolean;
  readAgain(): void;
  /** Rows that changed just now. */
  readonly changed: ReadonlySet<string>;
}

const PAGE_SIZE = 200;
/** How long changes are gathered before the rows are read. */
const GATHER_MS = 50;
const BUSY_GATHER_MS = 600;
const MOST_AT_ONCE = 400;

type Pages<T> = InfiniteData<ListPage<T>, string>;

/**
 * A list that is filtered and sorted by the server, read page by page as somebody scrolls. Of what changes only the rows that are here are read
 * again, in place: nothing jumps under the pointer. That the list itself is another by now is said (`isOld`).
 */
export function usePagedList<T>(options: PagedListOptions<T>): PagedList<T> {
  const { kind, filter, orderBy, read, isOff = false } = options;
  const client = useQueryClient();
  const queryKey = useMemo(() => listKey(kind, "paged", filter, orderBy), [kind, filter, orderBy]);
  const query = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) =>
      read({ filter, orderBy, pageToken: pageParam, pageSize: PAGE_SIZE, withTotal: pageParam === "" }, signal),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }) => (nextPageToken === "" ? undefined : nextPageToken),
    meta: { isKeptFresh: true },
    staleTime: 0,
    enabled: !isOff,
  });
  const [isOld, setOld] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another list is a new one
  useEffect(() => setOld(false), [queryKey, query.dataUpdatedAt === 0]);
  const items = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  const changed = useChangedRows({ ...options, items, queryKey, sayOld: () => setOld(true) });
  return {
    items,
    total: query.data?.pages[0]?.totalSize,
    error: query.error,
    isLoading: query.isPending,
    hasMore: query.hasNextPage,
    readMore: () => {
      if (query.hasNextPage && !query.isFetchingNextPage) void query.fetchNextPage();
    },
    isOld,
    readAgain: () => {
      setOld(false);
      void client.resetQueries({ queryKey });
    },
    changed,
  };
}

interface Renewal<T> extends PagedListOptions<T> {
  readonly items: readonly T[];
  readonly queryKey: readonly unknown[];
  readonly sayOld: () => void;
}

/** Reads the rows again that events speak of, and puts them where they were. */
function useChangedRows<T>(renewal: Renewal<T>): ReadonlySet<string> {
  const client = useQueryClient();
  const latest = useRef(renewal);
  latest.current = renewal;
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set());
  const waiting = useRef({ ids: new Set<string>(), timer: undefined as number | undefined, isBusy: false });

  const renew = async () => {
    const { ids } = waiting.current;
    const { items, queryKey, idOf, sayOld, movesRows = false } = latest.current;
    const here = new Set(items.map(idOf));
    const wanted = [...ids].slice(0, MOST_AT_ONCE);
    if (ids.size > MOST_AT_ONCE) sayOld();
    ids.clear();
    if (wanted.length === 0) return;
    const found = await readRows(latest.current, wanted).catch(() => undefined);
    // What came into the list, or left it: both make it another one.
    if (found === undefined || wanted.some((id) => here.has(id) !== found.has(id))) sayOld();
    if (found === undefined) return;
    const left = new Set(movesRows ? wanted.filter((id) => here.has(id) && !found.has(id)) : []);
    client.setQueryData<Pages<T>>(queryKey, (data) => data && withRows(data, found, left, idOf));
    setChanged(new Set(found.keys()));
    if (movesRows && [...found.keys()].some((id) => !here.has(id))) await client.invalidateQueries({ queryKey });
  };
  const schedule = () => {
    const state = waiting.current;
    if (state.isBusy) return;
    state.timer ??= window.setTimeout(
      async () => {
        state.timer = undefined;
        state.isBusy = true;
        await renew().finally(() => {
          state.isBusy = false;
        });
        if (state.ids.size > 0) schedule();
      },
      state.ids.size > 50 ? BUSY_GATHER_MS : GATHER_MS,
    );
  };
  const [listener] = useState(() => ({ kind, id }: { readonly kind: string; readonly id: string }) => {
    if (kind !== latest.current.kind || latest.current.isOff) return;
    waiting.current.ids.add(id);
    schedule();
  });
  useEvents(listener);
  useEffect(() => () => window.clearTimeout(waiting.current.timer), []);
  return changed;
}

async function readRows<T>(
  { filter, idField, read, idOf }: PagedListOptions<T>,
  ids: readonly string[],
): Promise<ReadonlyMap<string, T>> {
  const these = `${idField} IN (${ids.map((id) => `"${id}"`).join(", ")})`;
  const request = {
    filter: filter === "" ? these : `(${filter}) AND ${these}`,
    ...{ orderBy: "", pageToken: "", pageSize: ids.length, withTotal: false },
  };
  const { items } = await read(request, new AbortController().signal);
  return new Map(items.map((item) => [idOf(item), item]));
}

const withRows = <T>(
  data: Pages<T>,
  rows: ReadonlyMap<string, T>,
  left: ReadonlySet<string>,
  idOf: (item: T) => string,
): Pages<T> => ({
  ...data,
  pages: data.pages.map((page) => ({
    ...page,
    items: page.items.filter((item) => !left.has(idOf(item))).map((item) => rows.get(idOf(item)) ?? item),
  })),
});
